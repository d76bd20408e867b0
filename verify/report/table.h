#pragma once
#include <span>
#include <string>

#include "verify/result.h"

namespace block_attention {

/// Widths of the table's text columns, and whether to colour it. They are known before the first result is.
struct TableStyle {
    std::size_t case_width = 4;
    std::size_t stage_width = 5;
    std::size_t device_width = 6;
    bool colour = false;
};

/// The line above the table.
std::string table_header(const TableStyle& style);

/// One line: case, stage, device, elements compared, largest share of the bound, outcome.
std::string table_row(const TableStyle& style, const Result& result);

/// What is wrong with a result and where, several lines: the error, findings, faults, differing bits, worst tiles. Of a
/// result that passed: its worst tiles. Of one that was refused: nothing.
std::string details(const TableStyle& style, const Result& result);

/// Whether a result counts as failed. A refusal doesn't.
bool failed(const Result& result);

/// The details of all failed results, the worst first.
std::string failures(const TableStyle& style, std::span<const Result> results);

/// "120 results: 118 passed, 1 failed, 1 not served".
std::string summary(const TableStyle& style, std::span<const Result> results);

}  // namespace block_attention
