#include "verify/simulator/machine/special_registers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cta.h"
#include "verify/simulator/machine/warp.h"

namespace block_attention::simulator {

namespace {

struct Reader {
    std::string_view name;
    std::uint64_t (*read)(const Cta& cta, const Warp& warp, unsigned lane);
};

template <auto box, auto axis>
std::uint64_t read_box(const Cta& cta, const Warp&, unsigned) {
    return (cta.grid().*box).*axis;
}

template <auto axis>
std::uint64_t read_thread(const Cta& cta, const Warp& warp, unsigned lane) {
    return cta.thread(warp, lane).*axis;
}

template <auto axis>
std::uint64_t read_cta(const Cta& cta, const Warp&, unsigned) {
    return cta.id().*axis;
}

template <auto axis>
std::uint64_t read_cluster(const Cta& cta, const Warp&, unsigned) {
    return cta.grid().cluster_id(cta.number()).*axis;
}

template <auto axis>
std::uint64_t read_clusters(const Cta& cta, const Warp&, unsigned) {
    return cta.grid().grid.*axis / (cta.grid().cluster.*axis);
}

template <auto axis>
std::uint64_t read_cta_in_cluster(const Cta& cta, const Warp&, unsigned) {
    return unflatten(cta.rank(), cta.grid().cluster).*axis;
}

template <std::uint64_t value>
std::uint64_t constant(const Cta&, const Warp&, unsigned) {
    return value;
}

/// Without clusters every CTA is a cluster of its own (PTX ISA 10, %clusterid and following).
constexpr std::array kReaders{
    Reader{"%tid.x", read_thread<&Dim3::x>},
    Reader{"%tid.y", read_thread<&Dim3::y>},
    Reader{"%tid.z", read_thread<&Dim3::z>},
    Reader{"%ntid.x", read_box<&Grid::block, &Dim3::x>},
    Reader{"%ntid.y", read_box<&Grid::block, &Dim3::y>},
    Reader{"%ntid.z", read_box<&Grid::block, &Dim3::z>},
    Reader{"%ctaid.x", read_cta<&Dim3::x>},
    Reader{"%ctaid.y", read_cta<&Dim3::y>},
    Reader{"%ctaid.z", read_cta<&Dim3::z>},
    Reader{"%nctaid.x", read_box<&Grid::grid, &Dim3::x>},
    Reader{"%nctaid.y", read_box<&Grid::grid, &Dim3::y>},
    Reader{"%nctaid.z", read_box<&Grid::grid, &Dim3::z>},
    Reader{"%clusterid.x", read_cluster<&Dim3::x>},
    Reader{"%clusterid.y", read_cluster<&Dim3::y>},
    Reader{"%clusterid.z", read_cluster<&Dim3::z>},
    Reader{"%nclusterid.x", read_clusters<&Dim3::x>},
    Reader{"%nclusterid.y", read_clusters<&Dim3::y>},
    Reader{"%nclusterid.z", read_clusters<&Dim3::z>},
    Reader{"%cluster_ctaid.x", read_cta_in_cluster<&Dim3::x>},
    Reader{"%cluster_ctaid.y", read_cta_in_cluster<&Dim3::y>},
    Reader{"%cluster_ctaid.z", read_cta_in_cluster<&Dim3::z>},
    Reader{"%cluster_nctaid.x", read_box<&Grid::cluster, &Dim3::x>},
    Reader{"%cluster_nctaid.y", read_box<&Grid::cluster, &Dim3::y>},
    Reader{"%cluster_nctaid.z", read_box<&Grid::cluster, &Dim3::z>},
    Reader{"%cluster_ctarank", [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.rank()}; }},
    Reader{"%cluster_nctarank", [](const Cta& cta, const Warp&, unsigned) { return cta.grid().cluster.count(); }},
    Reader{"%is_explicit_cluster",
           [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.grid().explicit_cluster}; }},
    Reader{"%laneid", [](const Cta&, const Warp&, unsigned lane) { return std::uint64_t{lane}; }},
    Reader{"%warpid", [](const Cta&, const Warp& warp, unsigned) { return std::uint64_t{warp.index()}; }},
    Reader{"%nwarpid", constant<64>},  // of a multiprocessor (measured on H200)
    Reader{"%smid", [](const Cta& cta, const Warp&, unsigned) { return cta.number() % cta.grid().multiprocessors; }},
    Reader{"%nsmid", [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.grid().multiprocessors}; }},
    Reader{"%gridid", [](const Cta& cta, const Warp&, unsigned) { return cta.grid().number; }},
    Reader{"%lanemask_eq", [](const Cta&, const Warp&, unsigned lane) { return std::uint64_t{1} << lane; }},
    Reader{"%lanemask_lt", [](const Cta&, const Warp&, unsigned lane) { return (std::uint64_t{1} << lane) - 1; }},
    Reader{"%lanemask_le", [](const Cta&, const Warp&, unsigned lane) { return (std::uint64_t{2} << lane) - 1; }},
    Reader{"%lanemask_gt",
           [](const Cta&, const Warp&, unsigned lane) { return ~((std::uint64_t{2} << lane) - 1) & kAllLanes; }},
    Reader{"%lanemask_ge",
           [](const Cta&, const Warp&, unsigned lane) { return ~((std::uint64_t{1} << lane) - 1) & kAllLanes; }},
    Reader{"%dynamic_smem_size",
           [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.grid().dynamic_shared_bytes}; }},
    Reader{"%total_smem_size",
           [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.grid().shared_bytes}; }},
    Reader{"%aggr_smem_size",
           [](const Cta& cta, const Warp&, unsigned) { return std::uint64_t{cta.grid().shared_bytes} + kSharedBase; }},
    // What the system keeps for itself, and how far that may grow (measured on H200).
    Reader{"%reserved_smem_offset_begin", constant<0>},
    Reader{"%reserved_smem_offset_end", constant<0x120>},
    Reader{"%reserved_smem_offset_cap", constant<kSharedBase>},
    Reader{"%reserved_smem_offset_0", constant<0>},
    Reader{"%reserved_smem_offset_1", constant<0>},
    Reader{"WARP_SZ", constant<kWarpSize>},
};

constexpr std::array<std::string_view, 6> kClocks{"%clock",       "%clock_hi",       "%clock64",
                                                  "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"};

}  // namespace

SpecialKind special_kind(std::string_view name) {
    if (std::ranges::find(kClocks, name) != kClocks.end()) return SpecialKind::clock;
    return std::ranges::find(kReaders, name, &Reader::name) == kReaders.end() ? SpecialKind::unknown
                                                                              : SpecialKind::fixed;
}

std::uint64_t special_register(std::string_view name, const Cta& cta, const Warp& warp, unsigned lane) {
    return std::ranges::find(kReaders, name, &Reader::name)->read(cta, warp, lane);
}

}  // namespace block_attention::simulator
