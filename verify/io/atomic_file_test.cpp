#include "verify/io/atomic_file.h"

#include <doctest/doctest.h>

#include "verify/io/temporary_folder.h"
#include "verify/usage_error.h"

namespace block_attention {
namespace {

using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

std::ptrdiff_t files_in(const TemporaryFolder& folder) {
    return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST_CASE("a committed file replaces the old one") {
    const TemporaryFolder folder;
    write_file(folder / "a", "old");
    AtomicFile file(folder / "a");
    file.stream() << "new";
    CHECK(read_file(folder / "a") == "old");
    file.commit();
    CHECK(read_file(folder / "a") == "new");
    CHECK(files_in(folder) == 1);
}

TEST_CASE("a file that was not committed leaves nothing") {
    const TemporaryFolder folder;
    { AtomicFile(folder / "a").stream() << "half"; }
    CHECK(files_in(folder) == 0);
}

TEST_CASE("a symbolic link stays one") {
    const TemporaryFolder folder;
    write_file(folder / "target", "old");
    std::filesystem::create_symlink(folder / "target", folder / "link");
    AtomicFile file(folder / "link");
    file.stream() << "new";
    file.commit();
    CHECK(std::filesystem::is_symlink(folder / "link"));
    CHECK(read_file(folder / "target") == "new");
}

TEST_CASE("a device is written in place") {
    AtomicFile file("/dev/null");
    file.stream() << "gone";
    file.commit();
    CHECK_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

TEST_CASE("a path that cannot be written is refused at once") {
    const TemporaryFolder folder;
    CHECK_THROWS_AS(AtomicFile(folder / "missing" / "a"), UsageError);
    CHECK_THROWS_AS(AtomicFile(folder.path()), UsageError);
}

}  // namespace
}  // namespace block_attention
