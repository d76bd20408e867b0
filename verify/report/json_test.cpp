#include "verify/report/json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "verify/report/sample_results.h"

namespace block_attention {
namespace {

nlohmann::json report(std::span<const Result> results) {
    std::ostringstream stream;
    write_json(stream,
               {.version = "0.1.0",
                .seed = 7,
                .schedules = {.first_seed = 9, .count = 200},
                .devices = {{"cuda:0", "NVIDIA H200", 90, 132}}},
               results);
    return nlohmann::json::parse(stream.str());
}

TEST_CASE("the report describes the run") {
    const auto results = testing::sample_results();
    const nlohmann::json json = report(results);
    CHECK(json["format"] == 1);
    CHECK(json["version"] == "0.1.0");
    CHECK(json["seed"] == 7);
    CHECK(json["schedule_seed"] == 9);
    CHECK(json["schedules"] == 200);
    CHECK(json["passed"] == false);
    CHECK(json["devices"][0] ==
          nlohmann::json{
              {"name", "cuda:0"}, {"description", "NVIDIA H200"}, {"architecture", 90}, {"multiprocessors", 132}});
    CHECK(json["results"].size() == 4);
    CHECK(report(std::span(results).first(1))["passed"] == true);
    CHECK(report({})["passed"] == false);
}

TEST_CASE("a result that passed has its problem, shares, worst tiles, bits and times") {
    const nlohmann::json json = report(testing::sample_results())["results"][0];
    CHECK(json["case"] == "listing");
    CHECK(json["stage"] == "naive");
    CHECK(json["device"] == "cuda:0");
    CHECK(json["outcome"] == "passed");
    CHECK(json["problem"]["dtype"] == "bf16");
    CHECK(json["problem"]["jagged"] == false);
    CHECK(json["problem"]["block_size"] == 64);
    CHECK(json["problem"]["tiles"] == 4);
    CHECK(json["elements"] == 65536);
    CHECK(json["wrong"] == 0);
    CHECK(json["largest_share"] == 0.0321);
    CHECK(json["shares"] == nlohmann::json{0.01, 0.0321});
    CHECK(json["worst_tiles"][0]["first_row"] == 64);
    CHECK(json["worst_tiles"][0]["worst"]["bound"] == 0.03);
    CHECK(json["bits"]["differing"] == 0);
    CHECK(json["faults"].empty());
    CHECK(json["findings"].empty());
    CHECK(json["seconds"]["run"] == 1);
    CHECK_FALSE(json.contains("error"));
}

TEST_CASE("what JSON has no number for is a text") {
    const nlohmann::json json = report(testing::sample_results())["results"][1];
    CHECK(json["outcome"] == "failed");
    CHECK(json["largest_share"] == "inf");
    CHECK(json["shares"][1] == "inf");
    CHECK(json["worst_tiles"][0]["worst"]["computed"] == "nan");
}

TEST_CASE("faults, findings, errors and refusals are there") {
    const nlohmann::json results = report(testing::sample_results())["results"];
    CHECK(results[1]["faults"][0] == nlohmann::json{{"rule", "guard-zone"},
                                                    {"operand", "o"},
                                                    {"message", "the guard zone of o was written"},
                                                    {"occurrences", 3}});
    CHECK(results[1]["findings"][0]["rule"] == "out-of-bounds");
    CHECK(results[1]["findings"][0]["severity"] == "error");
    CHECK(results[1]["findings"][0]["line"] == 41);
    CHECK(results[1]["findings"][0]["thread"].size() == 3);
    CHECK(results[1]["bits"]["first"] == "o at head 1");
    CHECK(results[2]["error"] == "the launch failed");
    CHECK(results[2]["outcome"] == "failed");
    CHECK(results[3]["outcome"] == "not served");
    CHECK(results[3]["reason"] == "blocks of more than 1024 tokens");
    CHECK_FALSE(results[3].contains("elements"));
}

TEST_CASE("schedules are there, with the seed that stands out") {
    auto results = testing::sample_results();
    results[0].schedules = testing::one_result();
    results[1].schedules = testing::seed_that_differs();
    const nlohmann::json json = report(results)["results"];
    CHECK(json[0]["schedules"] == nlohmann::json{{"first_seed", 9}, {"count", 200}, {"runs", 200}});
    CHECK(json[1]["schedules"]["runs"] == 8);
    CHECK(json[1]["schedules"]["seed_that_stands_out"] == 16);
    CHECK(json[1]["schedules"]["difference"] == "2 bytes of o differ from seed 9's");
    CHECK_FALSE(json[2].contains("schedules"));
}

TEST_CASE("bytes that are no UTF-8 do not break the report") {
    auto results = testing::sample_results();
    results[0].case_name = "\xFF.safetensors";
    CHECK(report(results)["results"][0]["case"] == "\xEF\xBF\xBD.safetensors");
}

}  // namespace
}  // namespace block_attention
