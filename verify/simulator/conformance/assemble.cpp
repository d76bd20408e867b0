#include "verify/simulator/conformance/assemble.h"

#include <fmt/format.h>

#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>

#include "reference/parallel.h"

namespace block_attention::conformance {

namespace {

namespace fs = std::filesystem;

/// Forms of one module. ptxas takes time for each kernel, and modules are compiled beside each other.
constexpr std::size_t kFormsPerModule = 512;

/// A folder that goes away with its contents.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = (fs::temp_directory_path() / "conformance-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error(fmt::format("cannot make the folder {}", pattern));
        path_ = pattern;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

std::string read_file(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// In single quotes, as a shell takes it.
std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

/// A module's text, and which form each of its lines belongs to.
struct Text {
    std::string ptx;
    std::vector<std::size_t> form_of_line{0};  ///< lines count from 1
};

Text write_text(std::span<const Form> candidates, const std::vector<std::size_t>& forms) {
    Text text;
    const auto append = [&](const std::string& part, std::size_t form) {
        text.ptx += part;
        text.form_of_line.insert(text.form_of_line.end(), static_cast<std::size_t>(std::ranges::count(part, '\n')),
                                 form);
    };
    append(module_header(), SIZE_MAX);
    for (const std::size_t form : forms) append(kernel_text(candidates[form], kernel_name(form)), form);
    return text;
}

/// The forms that ptxas complains of: "ptxas FILE, line N; error   : ...".
std::set<std::size_t> refused_forms(const std::string& messages, const Text& text) {
    std::set<std::size_t> refused;
    std::istringstream lines(messages);
    for (std::string line; std::getline(lines, line);) {
        constexpr std::string_view kLine = ", line ";
        const std::size_t at = line.find(kLine);
        if (at == std::string::npos || line.find("error", at) == std::string::npos) continue;
        const std::size_t number = std::stoul(line.substr(at + kLine.size()));
        if (number >= text.form_of_line.size() || text.form_of_line[number] == SIZE_MAX) throw std::runtime_error(line);
        refused.insert(text.form_of_line[number]);
    }
    return refused;
}

std::unique_ptr<AssembledModule> assemble_module(std::span<const Form> candidates, std::vector<std::size_t> forms,
                                                 const std::string& ptxas, const fs::path& folder) {
    auto module = std::make_unique<AssembledModule>();
    const fs::path ptx = folder / fmt::format("{}.ptx", forms.front());
    const fs::path cubin = folder / fmt::format("{}.cubin", forms.front());
    const fs::path log = folder / fmt::format("{}.txt", forms.front());
    // It stops reading at some errors, so that a second answer can hold more of them.
    for (;;) {
        Text text = write_text(candidates, forms);
        std::ofstream(ptx) << text.ptx;
        const std::string command = fmt::format("{} -arch=sm_90a -o {} {} > {} 2>&1", quoted(ptxas),
                                                quoted(cubin.string()), quoted(ptx.string()), quoted(log.string()));
        if (std::system(command.c_str()) == 0) {
            module->ptx = std::move(text.ptx);
            break;
        }
        const std::string messages = read_file(log);
        const auto refused = refused_forms(messages, text);
        if (refused.empty()) throw std::runtime_error(fmt::format("{} fails: {}", ptxas, messages));
        std::erase_if(forms, [&](std::size_t form) { return refused.contains(form); });
        if (forms.empty()) return module;
    }
    const std::string image = read_file(cubin);
    const auto bytes = std::as_bytes(std::span(image));
    module->image.assign(bytes.begin(), bytes.end());
    module->forms = std::move(forms);
    module->cubins = {{90, true, module->image}};
    module->module = {"conformance", "a module of one-instruction kernels", module->ptx, module->cubins};
    return module;
}

}  // namespace

std::string kernel_name(std::size_t form) { return fmt::format("form_{}", form); }

std::vector<std::unique_ptr<AssembledModule>> assemble(std::span<const Form> candidates, const std::string& ptxas) {
    const TemporaryFolder folder;
    const std::size_t count = (candidates.size() + kFormsPerModule - 1) / kFormsPerModule;
    std::vector<std::unique_ptr<AssembledModule>> modules(count);
    parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i) {
        const std::size_t begin = static_cast<std::size_t>(i) * kFormsPerModule;
        std::vector<std::size_t> forms;
        for (std::size_t form = begin; form < std::min(begin + kFormsPerModule, candidates.size()); ++form)
            forms.push_back(form);
        modules[static_cast<std::size_t>(i)] = assemble_module(candidates, std::move(forms), ptxas, folder.path());
    });
    return modules;
}

}  // namespace block_attention::conformance
