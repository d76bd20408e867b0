#include "verify/devices.h"

#include <doctest/doctest.h>

#include <string>

#include "verify/usage_error.h"

namespace block_attention {
namespace {

std::string error_of(const DeviceRequest& request) {
    try {
        open_devices(request);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

TEST_CASE("without a name there are the host, the simulator, and every GPU or a note") {
    const DeviceSet set = open_devices({});
    REQUIRE(set.devices.size() >= 2);
    CHECK(set.devices[0].name == "host");
    CHECK(set.devices[0].is_host);
    CHECK_FALSE(set.devices[0].checks_bounds);
    CHECK(set.devices[1].name == "simulator");
    CHECK_FALSE(set.devices[1].is_host);
    CHECK(set.devices[1].checks_bounds);
    const bool has_gpu = set.devices.size() > 2;
    CHECK(set.notes.size() == (has_gpu ? 0 : 1));
    if (has_gpu) {
        CHECK(set.devices[2].name == "cuda:0");
    } else {
        CHECK(set.notes[0].find("no CUDA GPU: ") == 0);
        CHECK(set.notes[0].find("; kernels run in the simulator") != std::string::npos);
    }
}

TEST_CASE("names select, each device once") {
    const DeviceSet set = open_devices({.names = {"simulator", "host", "host"}});
    REQUIRE(set.devices.size() == 2);
    CHECK(set.devices[0].name == "host");
    CHECK(set.notes.empty());
    CHECK(open_devices({.names = {"all"}}).devices.size() == open_devices({}).devices.size());
}

TEST_CASE("the simulator is the GPU asked for") {
    for (const std::string& architecture : simulated_architectures()) {
        const DeviceSet set = open_devices({.names = {"simulator"}, .architecture = architecture});
        CHECK(set.devices.at(0).device->properties().name.find(architecture) != std::string::npos);
    }
    CHECK(error_of({.names = {"simulator"}, .architecture = "sm_90"}) ==
          "there is no simulated sm_90; did you mean sm_80 or sm_90a?");
}

TEST_CASE("a device that there isn't is an error") {
    CHECK(error_of({.names = {"simulater"}}) == "there is no device simulater; did you mean simulator?");
    CHECK(error_of({.names = {"gpu"}}) == "there is no device gpu; there are host, simulator, cuda, cuda:N, all");
    CHECK(error_of({.names = {"cuda:x"}}) == "there is no device cuda:x; did you mean cuda or cuda:N?");
    CHECK(error_of({.names = {"cuda:999"}}).find("no device cuda:999: ") == 0);
    if (open_devices({}).devices.size() == 2) {
        CHECK(error_of({.names = {"cuda"}}).find("no CUDA GPU: ") == 0);
    }
}

}  // namespace
}  // namespace block_attention
