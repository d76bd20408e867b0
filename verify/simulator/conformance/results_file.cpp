#include "verify/simulator/conformance/results_file.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <istream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace block_attention::conformance {

namespace {

constexpr std::string_view kDevice = "# device: ";
constexpr std::string_view kCandidates = "# candidates: ";

/// FNV-1a.
class Fingerprint {
  public:
    void add(std::string_view text) {
        for (const char c : text) add(static_cast<unsigned char>(c));
        add(0xFF);
    }
    void add(std::uint64_t value) { state_ = (state_ ^ value) * 0x100000001B3; }
    [[nodiscard]] std::uint64_t value() const { return state_; }

  private:
    std::uint64_t state_ = 0xCBF29CE484222325;
};

}  // namespace

std::uint64_t hash_of(std::span<const Form> candidates, const TupleTable& tuples) {
    Fingerprint fingerprint;
    fingerprint.add(module_header());
    std::map<std::string_view, bool> seen;
    for (const auto& form : candidates) {
        fingerprint.add(form.name);
        fingerprint.add(kernel_text(form, "form"));
        if (std::exchange(seen[form.operands], true)) continue;
        for (const std::uint64_t value : tuples.of(form)) fingerprint.add(value);
    }
    return fingerprint.value();
}

ResultsFile read_results(std::istream& stream) {
    ResultsFile file;
    std::size_t number = 0;
    for (std::string line; std::getline(stream, line);) {
        ++number;
        const auto fail = [&] { throw std::runtime_error(fmt::format("line {} is not understood: {}", number, line)); };
        if (line.starts_with(kDevice)) {
            file.device = line.substr(kDevice.size());
        } else if (line.starts_with(kCandidates)) {
            std::istringstream words(line.substr(kCandidates.size()));
            if (!(words >> file.candidates >> std::hex >> file.list_hash)) fail();
        } else if (!line.starts_with('#')) {
            std::istringstream words(line);
            std::string name;
            Hashes hashes{};
            words >> name >> std::hex;
            for (auto& hash : hashes) words >> hash;
            if (!words || !file.hashes.emplace(name, hashes).second) fail();
        }
    }
    return file;
}

void write_results(std::ostream& stream, const ResultsFile& file, std::span<const Form> forms) {
    fmt::print(stream,
               "# What a GPU answers to one-instruction kernels: docs/conformance.md. Written by conformance_record.\n"
               "# A line a form that ptxas accepts for sm_90a: its name, and a hash of the results of each quarter of "
               "its {} tuples.\n"
               "{}{}\n{}{} {:016x}\n",
               kTuples, kDevice, file.device, kCandidates, file.candidates, file.list_hash);
    for (const auto& form : forms) {
        const auto found = file.hashes.find(form.name);
        if (found == file.hashes.end()) continue;
        fmt::print(stream, "{} {:08x}\n", form.name, fmt::join(found->second, " "));
    }
}

}  // namespace block_attention::conformance
