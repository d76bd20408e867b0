#include "verify/simulator/ptx/special_registers.h"

#include <algorithm>
#include <array>

namespace block_attention::simulator::ptx {

namespace {

using namespace std::string_view_literals;

constexpr std::array kVectors{
    "%tid"sv,       "%ntid"sv,       "%ctaid"sv,         "%nctaid"sv,
    "%clusterid"sv, "%nclusterid"sv, "%cluster_ctaid"sv, "%cluster_nctaid"sv,
};

constexpr std::array kScalars{
    "%laneid"sv,
    "%warpid"sv,
    "%nwarpid"sv,
    "%smid"sv,
    "%nsmid"sv,
    "%gridid"sv,
    "%is_explicit_cluster"sv,
    "%cluster_ctarank"sv,
    "%cluster_nctarank"sv,
    "%lanemask_eq"sv,
    "%lanemask_le"sv,
    "%lanemask_lt"sv,
    "%lanemask_ge"sv,
    "%lanemask_gt"sv,
    "%clock"sv,
    "%clock_hi"sv,
    "%clock64"sv,
    "%globaltimer"sv,
    "%globaltimer_lo"sv,
    "%globaltimer_hi"sv,
    "%reserved_smem_offset_begin"sv,
    "%reserved_smem_offset_end"sv,
    "%reserved_smem_offset_cap"sv,
    "%reserved_smem_offset_0"sv,
    "%reserved_smem_offset_1"sv,
    "%total_smem_size"sv,
    "%aggr_smem_size"sv,
    "%dynamic_smem_size"sv,
    "%current_graph_exec"sv,
    "%pm0_64"sv,
    "%pm1_64"sv,
    "%pm2_64"sv,
    "%pm3_64"sv,
    "%pm4_64"sv,
    "%pm5_64"sv,
    "%pm6_64"sv,
    "%pm7_64"sv,
};

/// Whether the name is the prefix and a number below the limit, without leading zeros.
bool is_numbered(std::string_view name, std::string_view prefix, unsigned limit) {
    if (name.substr(0, prefix.size()) != prefix) return false;
    const std::string_view digits = name.substr(prefix.size());
    if (digits.empty() || digits.size() > 2 || (digits.size() == 2 && digits.front() == '0')) return false;
    unsigned number = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return false;
        number = 10 * number + static_cast<unsigned>(digit - '0');
    }
    return number < limit;
}

}  // namespace

bool is_special_vector(std::string_view name) {
    return std::find(kVectors.begin(), kVectors.end(), name) != kVectors.end();
}

bool is_special_register(std::string_view name) {
    return is_special_vector(name) || std::find(kScalars.begin(), kScalars.end(), name) != kScalars.end() ||
           is_numbered(name, "%envreg", 32) || is_numbered(name, "%pm", 8);
}

}  // namespace block_attention::simulator::ptx
