#pragma once
#include <cstdint>
#include <iosfwd>
#include <map>
#include <span>
#include <string>

#include "verify/simulator/conformance/execute.h"

namespace block_attention::conformance {

/// What a GPU answered to every form that is an instruction: h200.txt. A line a form, its name and the four hashes of
/// its results; lines that start with '#' say where they come from.
struct ResultsFile {
    std::string device;           ///< "NVIDIA H200"
    std::size_t candidates = 0;   ///< how many forms ptxas was asked about
    std::uint64_t list_hash = 0;  ///< of those forms: what hash_of gives
    std::map<std::string, Hashes, std::less<>> hashes;
};

/// Identifies a list of forms with their kernels and operands: it changes when any of these changes.
std::uint64_t hash_of(std::span<const Form> candidates, const TupleTable& tuples);

/// Throws std::runtime_error that names the line if it is no such file.
ResultsFile read_results(std::istream& stream);
/// `forms` gives the order of the lines.
void write_results(std::ostream& stream, const ResultsFile& file, std::span<const Form> forms);

}  // namespace block_attention::conformance
