#include "verify/cases/builtin.h"

#include <fmt/core.h>

#include <array>
#include <string_view>
#include <utility>

#include "verify/cases/case_spec.h"

namespace block_attention {
namespace {

struct Entry {
    std::string_view name;
    std::string_view spec;
};

/// Shapes and types. Sizes are chosen so that the simulator runs the whole set in seconds.
constexpr std::array kShapes{
    Entry{"listing", "heads=2,tokens=256,dim=128,block=64,dtype=fp16"},  // the published listing's own problem
    Entry{"listing-dim64", "heads=2,tokens=256,dim=64,block=64,dtype=fp16"},
    Entry{"bf16-dim128", "batch=2,heads=1,tokens=128,dim=128,dtype=bf16"},
    Entry{"bf16-dim64", "batch=2,heads=2,tokens=128,dim=64,dtype=bf16"},
    Entry{"fp32-dim128", "heads=1,tokens=128,dim=128,dtype=fp32"},
    Entry{"fp32-dim64", "heads=2,tokens=128,dim=64,dtype=fp32"},
    Entry{"block-1", "heads=2,tokens=100,dim=64,block=1"},
    Entry{"block-16", "batch=2,heads=2,tokens=64,dim=64,block=16,dtype=bf16"},
    Entry{"block-100", "tokens=250,dim=64,block=100"},
    Entry{"block-128", "heads=1,tokens=160,dim=64,block=128"},
    Entry{"block-1024", "tokens=1030,dim=2,block=1024"},
    Entry{"dim-1", "heads=2,tokens=130,dim=1"},
    Entry{"dim-32", "heads=2,tokens=128,dim=32,layout=bshd"},
    Entry{"dim-80", "tokens=128,dim=80,dtype=bf16"},
    Entry{"dim-256", "tokens=96,dim=256"},
    Entry{"tail-1", "batch=2,tokens=65,dim=64"},
    Entry{"tokens-1", "batch=3,heads=2,tokens=1"},
    Entry{"tokens-0", "batch=2,heads=2,tokens=0"},
    Entry{"batch-0", "batch=0,heads=2,tokens=64"},
    Entry{"jagged", "lengths=1+64+65+130+0+63+7,heads=2,dim=64"},
    Entry{"jagged-bf16", "lengths=0+40+0+0+100+16,heads=3,dim=128,block=16,dtype=bf16"},
    Entry{"jagged-fp32", "lengths=33+1+90,heads=2,dim=64,block=32,dtype=fp32,layout=bhsd"},
    Entry{"jagged-one-token", "lengths=1x9,heads=2,dim=64"},
    Entry{"jagged-empty", "lengths=0x4,heads=2,dim=64"},
    Entry{"jagged-trailing", "lengths=20+45,trailing=11,heads=2,dim=64,block=32"},
    Entry{"scale-0", "tokens=64,dim=64,scale=0"},
    Entry{"scale-negative", "tokens=96,dim=64,scale=-0.3"},
    Entry{"scale-large", "tokens=64,dim=64,scale=2.5,dtype=bf16"},
};

void append(std::vector<Case>& cases, std::string_view name, std::string_view spec, std::string_view what = {}) {
    constexpr std::uint64_t kNoSeed = 0;  // no built-in case draws its lengths
    Case test_case = parse_case(spec, kNoSeed);
    test_case.name = name;
    if (test_case.scale) test_case.description += fmt::format("; scale {}", *test_case.scale);
    if (!what.empty()) test_case.description += fmt::format("; {}", what);
    cases.push_back(std::move(test_case));
}

/// Every layout, twice where a jagged batch has it too.
void append_layouts(std::vector<Case>& cases) {
    constexpr std::string_view kUniform = "batch=2,heads=2,tokens=48,dim=64,block=32";
    constexpr std::string_view kJagged = "lengths=33+0+40,heads=2,dim=64,block=32";
    for (const LayoutFacts& facts : layouts()) {
        if (facts.layout == Layout::thd || facts.layout == Layout::bhsd) continue;  // the cases above
        append(cases, fmt::format("layout-{}", facts.name), fmt::format("{},layout={}", kUniform, facts.name),
               facts.summary);
    }
    for (const Layout layout : {Layout::padded, Layout::packed_qkv, Layout::transposed}) {
        append(cases, fmt::format("jagged-{}", name_of(layout)), fmt::format("{},layout={}", kJagged, name_of(layout)),
               fmt::format("{}; without the batch axis", layouts()[static_cast<std::size_t>(layout)].summary));
    }
    append(cases, "layout-bf16-transposed", fmt::format("{},layout=transposed,dtype=bf16", kUniform),
           "[batch, heads, dim, tokens]");
    append(cases, "layout-fp32-unaligned", fmt::format("{},layout=unaligned,dtype=fp32", kUniform),
           "bhsd, one element behind an aligned address");
}

void append_fills(std::vector<Case>& cases) {
    for (const FillFacts& facts : fills()) {
        if (facts.fill == Fill::normal) continue;
        append(cases, fmt::format("values-{}", facts.name), fmt::format("heads=2,tokens=96,dim=64,fill={}", facts.name),
               facts.summary);
    }
    for (const std::string_view dtype : {"bf16", "fp32"}) {
        for (const Fill fill : {Fill::attention, Fill::extreme_logits, Fill::subnormal, Fill::large_values}) {
            append(cases, fmt::format("values-{}-{}", dtype, name_of(fill)),
                   fmt::format("tokens=96,dim=64,dtype={},fill={}", dtype, name_of(fill)),
                   fills()[static_cast<std::size_t>(fill)].summary);
        }
    }
}

std::vector<Case> make_cases() {
    std::vector<Case> cases;
    for (const Entry& entry : kShapes) append(cases, entry.name, entry.spec);
    append_layouts(cases);
    append_fills(cases);
    return cases;
}

}  // namespace

const std::vector<Case>& builtin_cases() {
    static const std::vector<Case> kCases = make_cases();
    return kCases;
}

}  // namespace block_attention
