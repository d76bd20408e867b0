/// Moves (PTX ISA 9.7.9: mov, cvta, isspacep) and special registers (chapter 10).
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

void add_plain_moves(FormList& list) {
    constexpr std::array kTypes{
        TypeName{"pred", 'p'}, TypeName{"b16", 'h'},  TypeName{"u16", 'h'}, TypeName{"s16", 'h'}, TypeName{"b32", 'w'},
        TypeName{"u32", 'w'},  TypeName{"s32", 'w'},  TypeName{"b64", 'l'}, TypeName{"u64", 'l'}, TypeName{"s64", 'l'},
        TypeName{"f16", 'e'},  TypeName{"bf16", 'g'}, TypeName{"f32", 'f'}, TypeName{"f64", 'd'}};
    for (const auto& [type, kind] : kTypes) list.add(fmt::format("mov.{}", type), times(kind), times(kind));
}

void add_packing(FormList& list) {
    list.add_code("mov.b32@pack-2", "w", "hh", "mov.b32 %d0, {%a, %b};");
    list.add_code("mov.b64@pack-2", "l", "ww", "mov.b64 %d0, {%a, %b};");
    list.add_code("mov.b64@pack-4", "l", "hhhh", "mov.b64 %d0, {%a, %b, %c, %e};");
    list.add_code("mov.b32@unpack-2", "hh", "w", "mov.b32 {%d0, %d1}, %a;");
    list.add_code("mov.b64@unpack-2", "ww", "l", "mov.b64 {%d0, %d1}, %a;");
    list.add_code("mov.b64@unpack-4", "hhhh", "l", "mov.b64 {%d0, %d1, %d2, %d3}, %a;");
    list.add_code("mov.b64@unpack-to-sink", "w", "l", "mov.b64 {_, %d0}, %a;");
    list.add_code("mov.b128@pack-and-unpack", "ll", "ll",
                  "{ .reg .b128 %both; mov.b128 %both, {%a, %b}; mov.b128 {%d1, %d0}, %both; }");
    list.add_code(
        "mov.b128", "ll", "ll",
        "{ .reg .b128 %both, %copy; mov.b128 %both, {%a, %b}; mov.b128 %copy, %both; mov.b128 {%d0, %d1}, %copy; }");
}

/// Each window answers for an address in each memory.
void add_windows(FormList& list) {
    for (const auto* space :
         {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry"}) {
        list.add_code(fmt::format("isspacep.{}@global", space), "p", "", fmt::format("isspacep.{} %d0, %own;", space));
        list.add_code(
            fmt::format("isspacep.{}@shared", space), "p", "",
            fmt::format("cvt.u64.u32 %xl0, %cell; cvta.shared.u64 %xl0, %xl0; isspacep.{} %d0, %xl0;", space));
        list.add_code(fmt::format("isspacep.{}@local", space), "p", "",
                      fmt::format("mov.u64 %xl0, stack; cvta.local.u64 %xl0, %xl0; isspacep.{} %d0, %xl0;", space));
        list.add_code(fmt::format("isspacep.{}@param", space), "p", "",
                      fmt::format("mov.b64 %xl0, bytes; cvta.param.u64 %xl0, %xl0; isspacep.{} %d0, %xl0;", space));
        list.add_code(fmt::format("isspacep.{}@const", space), "p", "",
                      fmt::format("mov.b64 %xl0, table; cvta.const.u64 %xl0, %xl0; isspacep.{} %d0, %xl0;", space));
    }
    for (const auto* space : {"global", "shared", "shared::cta", "local", "param", "const"}) {
        list.add_code(
            fmt::format("cvta.to.{}.u64", space), "l", "w",
            fmt::format(
                "and.b32 %a, %a, 255; cvt.u64.u32 %xl0, %a; cvta.{0}.u64 %xl0, %xl0; cvta.to.{0}.u64 %d0, %xl0;",
                space));
    }
    list.add_code("mov.u32@address-of-shared", "w", "", "sub.u32 %d0, %cell, 0;");
}

void add_special_registers(FormList& list) {
    for (const auto& name :
         combine({{"tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"},
                  {".x", ".y", ".z"}})) {
        list.add_code("mov.u32@%" + name, "w", "", fmt::format("mov.u32 %d0, %{};", name));
    }
    for (const auto* name :
         {"laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "cluster_ctarank",
          "cluster_nctarank", "total_smem_size", "dynamic_smem_size", "aggr_smem_size", "nwarpid", "nsmid",
          "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
          "reserved_smem_offset_0", "reserved_smem_offset_1"}) {
        list.add_code(fmt::format("mov.u32@%{}", name), "w", "", fmt::format("mov.u32 %d0, %{};", name));
    }
    list.add_code("mov.u32@%total_smem_size-with-8192-bytes", "w", "",
                  "mov.u32 %d0, %total_smem_size; st.shared.u32 [%cell], %d0;");
    list.add_code("mov.pred@%is_explicit_cluster", "p", "", "mov.pred %d0, %is_explicit_cluster;");
    list.add_code("mov.u32@WARP_SZ", "w", "", "mov.u32 %d0, WARP_SZ;");
}

}  // namespace

void add_move_forms(FormList& list) {
    list.group("moves");
    add_plain_moves(list);
    add_packing(list);
    list.group("address windows");
    add_windows(list);
    list.group("special registers");
    add_special_registers(list);
}

}  // namespace block_attention::conformance
