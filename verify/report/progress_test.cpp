#include "verify/report/progress.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

namespace block_attention {
namespace {

TEST_CASE("nothing is written where there is no terminal") {
    std::ostringstream stream;
    {
        Progress progress(stream, false, 2);
        progress.begin("a long step", true);
        progress.end();
        progress.clear();
    }
    CHECK(stream.str().empty());
}

TEST_CASE("a long step is shown, and removed") {
    std::ostringstream stream;
    {
        Progress progress(stream, true, 4);
        progress.begin("first", true);
        CHECK(stream.str() == "[" + std::string(24, ' ') + "] 0/4 first");
        progress.end();
        stream.str("");
        progress.begin("second", true);
        CHECK(stream.str() == "\r\033[K[" + std::string(6, '#') + std::string(18, ' ') + "] 1/4 second");
        stream.str("");
    }
    CHECK(stream.str() == "\r\033[K");
}

TEST_CASE("a short step is not shown at once") {
    std::ostringstream stream;
    Progress progress(stream, true, 4);
    progress.begin("first", false);
    CHECK(stream.str().empty());
}

}  // namespace
}  // namespace block_attention
