#include "verify/simulator/machine/finding_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "verify/simulator/machine/cta.h"

namespace block_attention::simulator {

namespace {

/// Whether a source file is a header of the CUDA toolkit, wherever that is installed.
bool is_toolkit_header(std::string_view path) {
    const auto include = path.rfind("/include/");
    if (include == std::string_view::npos) return false;
    const std::string_view root = path.substr(0, include);
    return root.find("cuda") != std::string_view::npos || root.find("nvidia") != std::string_view::npos;
}

}  // namespace

std::string_view name_of(Rule rule) {
    switch (rule) {
        case Rule::uninitialized_read:
            return "uninitialized-read";
        case Rule::out_of_bounds:
            return "out-of-bounds";
        case Rule::misaligned:
            return "misaligned";
        case Rule::read_only:
            return "read-only";
        case Rule::membermask:
            return "membermask";
        case Rule::barrier:
            return "barrier";
        case Rule::mbarrier:
            return "mbarrier";
        case Rule::cluster:
            return "cluster";
        case Rule::copy:
            return "copy";
        case Rule::tensor_map:
            return "tensor-map";
        case Rule::matrix:
            return "matrix";
        case Rule::tensor_memory:
            return "tensor-memory";
        case Rule::still_running:
            return "still-running";
        case Rule::deadlock:
            return "deadlock";
        case Rule::trap:
            return "trap";
        case Rule::step_limit:
            return "step-limit";
    }
    return "unknown";
}

Dim3 unflatten(std::uint64_t linear, Dim3 box) {
    return {static_cast<std::uint32_t>(linear % box.x), static_cast<std::uint32_t>(linear / box.x % box.y),
            static_cast<std::uint32_t>(linear / box.x / box.y)};
}

std::vector<SourcePlace> source_places(const Program& program, std::uint32_t instruction) {
    const ptx::Module& module = program.module->ptx;
    const auto& code = program.function->instructions;
    const ptx::SourceLine* line = nullptr;
    if (instruction < code.size() && code[instruction].source_line >= 0) {
        line = &module.source_lines[static_cast<std::size_t>(code[instruction].source_line)];
    }
    std::vector<SourcePlace> own;
    std::optional<SourcePlace> outermost;
    while (line != nullptr) {
        if (const auto file = module.files.find(line->file); file != module.files.end()) {
            outermost = {file->second, line->line};
            if (!is_toolkit_header(file->second)) own.push_back(*outermost);
        }
        line = line->inlined_at < 0 ? nullptr : &module.source_lines[static_cast<std::size_t>(line->inlined_at)];
    }
    if (!own.empty()) return own;
    if (outermost) return {*outermost};
    const auto position = instruction < code.size() ? code[instruction].position : program.function->position;
    return {{module.path, position.line}};
}

SourcePlace source_place(const Program& program, std::uint32_t instruction) {
    return source_places(program, instruction).front();
}

std::string place_text(const Program& program, std::uint32_t instruction) {
    std::vector<std::string> texts;
    for (const SourcePlace& place : source_places(program, instruction)) {
        texts.push_back(fmt::format("{}:{}", place.file, place.line));
    }
    if (texts.size() == 1) return texts.front();
    return fmt::format("{} (from {})", texts.front(), fmt::join(texts.begin() + 1, texts.end(), ", "));
}

std::string instruction_text(const Program& program, std::uint32_t instruction) {
    const auto& code = program.function->instructions;
    if (instruction >= code.size()) return "the end of the kernel";
    return ptx::instruction_text(program.module->ptx, code[instruction]);
}

void FindingLog::add(Rule rule, std::uint32_t instruction, Dim3 thread, std::uint64_t occurrences,
                     const std::function<std::string()>& describe) {
    const auto [found, added] = entries_.try_emplace(Key{instruction, rule});
    found->second.occurrences += occurrences;
    if (!added) return;
    found->second.message = describe();
    found->second.thread = thread;
    found->second.order = static_cast<std::uint32_t>(entries_.size());
}

FindingCollector::FindingCollector(const Grid& grid) : program_(*grid.program), grid_(grid) {}

void FindingCollector::add(std::uint64_t cta, FindingLog& log) {
    if (log.empty()) return;
    const std::lock_guard lock(mutex_);
    for (auto& [key, entry] : log.entries()) {
        const auto [found, added] = gathered_.try_emplace(key);
        Gathered& gathered = found->second;
        gathered.counts.emplace_back(cta, entry.occurrences);
        if (added || cta < gathered.cta) {
            gathered.first = std::move(entry);
            gathered.cta = cta;
        }
    }
    log.clear();
}

std::vector<Finding> FindingCollector::report(std::uint64_t last, std::size_t limit) const {
    std::vector<std::pair<FindingLog::Key, const Gathered*>> order;
    for (const auto& [key, gathered] : gathered_) {
        if (gathered.cta <= last) order.emplace_back(key, &gathered);
    }
    std::ranges::sort(order, {},
                      [](const auto& entry) { return std::pair(entry.second->cta, entry.second->first.order); });
    std::vector<Finding> findings;
    std::map<std::pair<Rule, std::string>, std::size_t> places;
    for (const auto& [key, gathered] : order) {
        // The instructions of one source line are one fault: an unrolled loop has hundreds of them.
        const auto [found, added] =
            places.try_emplace({key.rule, place_text(program_, key.instruction)}, findings.size());
        if (added && findings.size() == limit) break;
        Finding finding = make_finding(key, *gathered, last);
        if (added) {
            findings.push_back(std::move(finding));
        } else {
            findings[found->second].occurrences += finding.occurrences;
        }
    }
    return findings;
}

Finding FindingCollector::make_finding(const FindingLog::Key& key, const Gathered& gathered, std::uint64_t last) const {
    const auto& code = program_.function->instructions;
    const auto places = source_places(program_, key.instruction);
    Finding finding;
    finding.rule = name_of(key.rule);
    finding.message = gathered.first.message;
    finding.kernel = program_.function->name;
    finding.file = places.front().file;
    finding.line = places.front().line;
    for (std::size_t i = 1; i < places.size(); ++i) {
        finding.callers.push_back(fmt::format("{}:{}", places[i].file, places[i].line));
    }
    finding.instruction = instruction_text(program_, key.instruction);
    finding.ptx_line = key.instruction < code.size() ? code[key.instruction].position.line : 0;
    finding.cta = grid_.cta_id(gathered.cta);
    finding.thread = gathered.first.thread;
    finding.occurrences = 0;
    for (const auto& [cta, occurrences] : gathered.counts) {
        if (cta <= last) finding.occurrences += occurrences;
    }
    return finding;
}

}  // namespace block_attention::simulator
