/// conformance_record: asks a GPU what every instruction form computes, writes it to a file, and says where the
/// simulator computes something else.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>

#include "verify/device/cuda_device.h"
#include "verify/simulator/conformance/assemble.h"
#include "verify/simulator/conformance/execute.h"
#include "verify/simulator/conformance/forms.h"
#include "verify/simulator/conformance/results_file.h"

namespace block_attention::conformance {
namespace {

/// Tuples shown of a form that differs.
constexpr std::size_t kShown = 6;

/// The results of every form that has any, by its number.
std::map<std::size_t, Results> execute_natively(Device& device, std::span<const Form> candidates,
                                                const TupleTable& tuples,
                                                const std::vector<std::unique_ptr<AssembledModule>>& modules) {
    Executor executor(device, tuples);
    std::map<std::size_t, Results> results;
    for (const auto& module : modules) {
        for (const std::size_t form : module->forms) {
            results.emplace(form, executor.run(candidates[form], module->module, kernel_name(form)));
        }
    }
    return results;
}

/// Prints the first differing tuples of a form, and how many there are.
std::size_t print_differences(const Form& form, const TupleTable& tuples, const Results& simulated,
                              const Results& native) {
    std::size_t different = 0;
    const auto& operands = tuples.of(form);
    for (std::size_t t = 0; t < kTuples; ++t) {
        bool same = true;
        for (std::size_t j = 0; j < form.results.size(); ++j)
            same = same && simulated[j * kTuples + t] == native[j * kTuples + t];
        if (same || ++different > kShown) continue;
        fmt::print("  {}: tuple {}:", form.name, t);
        for (std::size_t k = 0; k < form.operands.size(); ++k) fmt::print(" {:x}", operands[k * kTuples + t]);
        fmt::print("  simulator");
        for (std::size_t j = 0; j < form.results.size(); ++j) fmt::print(" {:x}", simulated[j * kTuples + t]);
        fmt::print("  GPU");
        for (std::size_t j = 0; j < form.results.size(); ++j) fmt::print(" {:x}", native[j * kTuples + t]);
        fmt::print("\n");
    }
    if (different != 0) fmt::print("DIFFERENT {} in {} of {} tuples\n", form.name, different, kTuples);
    return different;
}

int record(const std::string& output, int ordinal, const std::string& ptxas) {
    std::string why_not;
    const auto device = output.empty() ? nullptr : open_cuda_device(ordinal, why_not);
    if (!output.empty() && device == nullptr) throw std::runtime_error(why_not);
    if (device && device->properties().architecture != 90) {
        throw std::runtime_error(
            fmt::format("GPU {} is sm_{}, but the kernels are for sm_90a", ordinal, device->properties().architecture));
    }

    const auto candidates = all_forms();
    const TupleTable tuples(candidates);
    const auto modules = assemble(candidates, ptxas);
    std::vector<std::size_t> accepted;
    for (const auto& module : modules) accepted.insert(accepted.end(), module->forms.begin(), module->forms.end());
    std::vector<Form> forms;
    for (const std::size_t form : accepted) forms.push_back(candidates[form]);
    fmt::print("{} candidates, of which ptxas accepts {}\n", candidates.size(), forms.size());

    const auto simulated = simulate(forms, tuples);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < forms.size(); ++i) {
        if (!simulated[i].refusal.empty()) ++refused;
        if (!simulated[i].refusal.empty()) fmt::print("REFUSED {}: {}\n", forms[i].name, simulated[i].refusal);
        for (const auto& finding : simulated[i].findings) fmt::print("FINDING {}: {}\n", forms[i].name, finding);
    }
    fmt::print("{} forms are refused by the simulator\n", refused);
    if (device == nullptr) return 0;

    const auto native = execute_natively(*device, candidates, tuples, modules);
    ResultsFile file;
    file.device = device->properties().name;
    file.candidates = candidates.size();
    file.list_hash = hash_of(candidates, tuples);
    std::size_t different = 0;
    for (std::size_t i = 0; i < forms.size(); ++i) {
        const Results& results = native.at(accepted[i]);
        file.hashes.emplace(forms[i].name, hash(forms[i], results));
        if (simulated[i].refusal.empty() && print_differences(forms[i], tuples, simulated[i].results, results) != 0)
            ++different;
    }
    std::ofstream stream(output);
    write_results(stream, file, forms);
    if (!stream.flush()) throw std::runtime_error(fmt::format("cannot write {}", output));
    fmt::print("{} forms of {} differ; the results of {} are in {}\n", different, forms.size() - refused, file.device,
               output);
    return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace block_attention::conformance

int main(int argc, char** argv) {
    CLI::App app(
        "Records what a GPU of compute capability 9.0 computes in every instruction form, and compares the simulator "
        "with it.");
    std::string output;
    int ordinal = 0;
    std::string ptxas = BLOCK_ATTENTION_PTXAS;
    app.add_option("--output", output, "the file to write; without it no GPU is asked, and only the simulator runs");
    app.add_option("--gpu", ordinal, "number of the GPU, from 0");
    app.add_option("--ptxas", ptxas, "the assembler that decides which forms are instructions")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        return block_attention::conformance::record(output, ordinal, ptxas);
    } catch (const std::exception& error) {
        std::cerr << "conformance_record: " << error.what() << "\n";
        return 2;
    }
}
