/// Loads and stores (PTX ISA 9.7.9: ld, st). What orders accesses or steers caches changes no data here; each such
/// modifier is there in every state space, but not with every type.
#include <fmt/format.h>

#include <array>

#include "verify/simulator/conformance/forms.h"

namespace block_attention::conformance {

namespace {

/// A way to reach 32 bytes of memory.
struct Place {
    std::string_view space;  ///< the modifier; "" is generic addressing
    std::string_view note;   ///< tells two places of the same space apart
    std::string_view setup;  ///< leaves the address in `address`
    std::string_view address;
    std::string_view direct;  ///< the state space as such, for filling and reading back
};

constexpr std::array kWritable{
    Place{".global", "", "mov.b64 %xl3, %mem;", "%xl3", "global"},
    Place{"", "generic-global", "mov.b64 %xl3, %mem;", "%xl3", "global"},
    Place{".shared", "", "mov.b32 %xw3, %cell;", "%xw3", "shared"},
    Place{".shared", "64-bit-address", "cvt.u64.u32 %xl3, %cell;", "%xl3", "shared"},
    Place{".shared::cta", "", "mov.b32 %xw3, %cell;", "%xw3", "shared"},
    Place{".shared::cluster", "", "mov.b32 %xw3, %cell;", "%xw3", "shared"},
    Place{"", "generic-shared", "cvt.u64.u32 %xl3, %cell; cvta.shared.u64 %xl3, %xl3;", "%xl3", "shared"},
    Place{".local", "", "mov.b64 %xl3, stack;", "%xl3", "local"},
    Place{".local", "32-bit-address", "mov.b32 %xw3, stack;", "%xw3", "local"},
    Place{"", "generic-local", "mov.b64 %xl3, stack; cvta.local.u64 %xl3, %xl3;", "%xl3", "local"},
};

/// Global memory is here what the kernel does not write, the operands of four neighbouring threads: .nc asks for that.
constexpr std::array kReadOnly{
    Place{".global", "", "and.b64 %xl3, %own, -32;", "%xl3", ""},
    Place{"", "generic-global", "and.b64 %xl3, %own, -32;", "%xl3", ""},
    Place{".const", "", "mov.b64 %xl3, table;", "%xl3", ""},
    Place{"", "generic-const", "mov.b64 %xl3, table; cvta.const.u64 %xl3, %xl3;", "%xl3", ""},
    Place{".param", "", "mov.b64 %xl3, bytes;", "%xl3", ""},
    Place{".param::entry", "", "mov.b64 %xl3, bytes;", "%xl3", ""},
    Place{"", "generic-param", "mov.b64 %xl3, bytes; cvta.param.u64 %xl3, %xl3;", "%xl3", ""},
};

/// The memory as such: 32-byte cell, by the name that its state space gives it.
std::string_view cell_of(const Place& place) {
    return place.direct == "global" ? "%mem" : place.direct == "shared" ? "%cell" : "stack";
}

struct Element {
    std::string_view type;
    unsigned bytes;
    Kind kind;  ///< of the register
};

constexpr std::array kElements{
    Element{"b8", 1, 'h'},  Element{"u8", 1, 'h'},  Element{"s8", 1, 'h'},  Element{"u8", 1, 'w'},
    Element{"s8", 1, 'w'},  Element{"u8", 1, 'l'},  Element{"s8", 1, 'l'},  Element{"b16", 2, 'h'},
    Element{"u16", 2, 'h'}, Element{"s16", 2, 'h'}, Element{"b16", 2, 'w'}, Element{"u16", 2, 'w'},
    Element{"s16", 2, 'w'}, Element{"u16", 2, 'l'}, Element{"s16", 2, 'l'}, Element{"b32", 4, 'w'},
    Element{"u32", 4, 'w'}, Element{"s32", 4, 'w'}, Element{"f32", 4, 'f'}, Element{"b32", 4, 'l'},
    Element{"u32", 4, 'l'}, Element{"s32", 4, 'l'}, Element{"b64", 8, 'l'}, Element{"u64", 8, 'l'},
    Element{"s64", 8, 'l'}, Element{"f64", 8, 'd'},
};

struct Vector {
    std::string_view modifier;
    unsigned length;
};

constexpr std::array kVectors{Vector{"", 1}, Vector{".v2", 2}, Vector{".v4", 4}};

/// "%d0" or "{%d0, %d1}".
std::string list_of(unsigned length, const std::array<std::string_view, 4>& names) {
    std::string text{names[0]};
    for (unsigned i = 1; i < length; ++i) text += fmt::format(", {}", names[i]);
    return length == 1 ? text : fmt::format("{{{}}}", text);
}

std::string note_of(const Place& place, const Element& element) {
    std::string note{place.note};
    if (bits_of(element.kind) > 8 * std::max(element.bytes, 2U)) {
        note += fmt::format("{}{}-bit-register", note.empty() ? "" : "-", bits_of(element.kind));
    }
    return note.empty() ? "" : "@" + note;
}

/// Moves the address on within the 32 bytes, by a multiple of the access's size that depends on the thread.
std::string spread(const Place& place, unsigned bytes) {
    std::string text = fmt::format("mul.lo.u32 %xw2, %thread, {}; and.b32 %xw2, %xw2, {}; ", bytes, kMemoryBytes - 1);
    if (place.address == "%xl3") return text + "cvt.u64.u32 %xl2, %xw2; add.u64 %xl3, %xl3, %xl2; ";
    return text + "add.u32 %xw3, %xw3, %xw2; ";
}

void add_load(FormList& list, const Place& place, std::string_view before, std::string_view after, const Vector& vector,
              const Element& element) {
    const unsigned bytes = vector.length * element.bytes;
    if (bytes > kMemoryBytes) return;
    const std::string name = fmt::format("ld{}{}{}{}.{}", before, place.space, after, vector.modifier, element.type);
    std::string code;
    if (!place.direct.empty()) {
        code = fmt::format("st.{0}.v2.b64 [{1}], {{%a, %b}}; st.{0}.v2.b64 [{1}+16], {{%c, %e}}; ", place.direct,
                           cell_of(place));
    }
    code += fmt::format("{} {}{} {}, [{}];", place.setup, spread(place, bytes), name,
                        list_of(vector.length, {"%d0", "%d1", "%d2", "%d3"}), place.address);
    list.add_code(name + note_of(place, element), times(element.kind, vector.length),
                  place.direct.empty() ? "l" : "llll", code);
}

void add_store(FormList& list, const Place& place, std::string_view before, std::string_view after,
               const Vector& vector, const Element& element) {
    const unsigned bytes = vector.length * element.bytes;
    if (bytes > kMemoryBytes) return;
    const std::string name = fmt::format("st{}{}{}{}.{}", before, place.space, after, vector.modifier, element.type);
    const std::string code = fmt::format(
        "mov.b64 %xl0, 0x0123456789abcdef; st.{0}.v2.b64 [{1}], {{%xl0, %xl0}}; st.{0}.v2.b64 [{1}+16], {{%xl0, "
        "%xl0}}; "
        "{2} {3}{4} [{5}], {6}; ld.{0}.v2.b64 {{%d0, %d1}}, [{1}]; ld.{0}.v2.b64 {{%d2, %d3}}, [{1}+16];",
        place.direct, cell_of(place), place.setup, spread(place, bytes), name, place.address,
        list_of(vector.length, {"%a", "%b", "%c", "%e"}));
    list.add_code(name + note_of(place, element), "llll", times(element.kind, vector.length), code);
}

const Choices kScopes{".cta", ".cluster", ".gpu", ".sys"};

/// Modifiers before the state space, and after it.
struct Hints {
    Choices before;
    Choices after;
};

Hints load_hints() {
    Hints hints;
    hints.before = {".weak", ".volatile", ".mmio.relaxed.sys"};
    for (const auto& order : combine({{".relaxed", ".acquire"}, kScopes})) hints.before.push_back(order);
    hints.after = {".ca", ".cg", ".cs", ".lu", ".cv", ".nc"};
    for (const auto& cache : combine({{".ca", ".cg", ".cs"}, {".nc"}})) hints.after.push_back(cache);
    const Choices evictions{
        "", ".L1::evict_normal", ".L1::evict_unchanged", ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate"};
    for (const auto& cache : combine({{"", ".nc"}, evictions, {"", ".L2::64B", ".L2::128B", ".L2::256B"}})) {
        if (!cache.empty() && cache != ".nc") hints.after.push_back(cache);
    }
    return hints;
}

Hints store_hints() {
    Hints hints;
    hints.before = {".weak", ".volatile", ".mmio.relaxed.sys"};
    for (const auto& order : combine({{".relaxed", ".release"}, kScopes})) hints.before.push_back(order);
    hints.after = {".wb",
                   ".cg",
                   ".cs",
                   ".wt",
                   ".L1::evict_normal",
                   ".L1::evict_unchanged",
                   ".L1::evict_first",
                   ".L1::evict_last",
                   ".L1::no_allocate"};
    return hints;
}

constexpr Element kWord{"b32", 4, 'w'};

void add_loads(FormList& list) {
    const Hints hints = load_hints();
    const auto add_all = [&](const Place& place) {
        for (const auto& vector : kVectors) {
            for (const auto& element : kElements) add_load(list, place, "", "", vector, element);
        }
        for (const auto& vector : {kVectors[0], kVectors[2]}) {
            for (const auto& hint : hints.before) add_load(list, place, hint, "", vector, kWord);
            for (const auto& hint : hints.after) add_load(list, place, "", hint, vector, kWord);
        }
    };
    for (const auto& place : kReadOnly) add_all(place);
    for (const auto& place : kWritable) {
        if (place.direct != "global") add_all(place);
    }
    for (const auto* space : {"", ".global", ".shared"}) {
        const bool shared = std::string_view(space) == ".shared";
        list.add_code(
            fmt::format("ld{}.b128", space), "ll", "ll",
            fmt::format("{{ .reg .b128 %both; st{0}.v2.b64 [{1}], {{%a, %b}}; ld{0}.b128 %both, [{1}]; mov.b128 {{%d0, "
                        "%d1}}, %both; }}",
                        space, shared ? "%cell" : "%mem"));
    }
    list.add_code(
        "ld.global.L2::cache_hint.b32", "w", "w",
        "createpolicy.fractional.L2::evict_first.b64 %xl0, 1.0; st.global.b32 [%mem], %a; ld.global.L2::cache_hint.b32 "
        "%d0, [%mem], %xl0;");
}

void add_stores(FormList& list) {
    const Hints hints = store_hints();
    for (const auto& place : kWritable) {
        for (const auto& vector : kVectors) {
            for (const auto& element : kElements) add_store(list, place, "", "", vector, element);
        }
        for (const auto& vector : {kVectors[0], kVectors[2]}) {
            for (const auto& hint : hints.before) add_store(list, place, hint, "", vector, kWord);
            for (const auto& hint : hints.after) add_store(list, place, "", hint, vector, kWord);
        }
    }
    for (const auto* space : {"", ".global", ".shared"}) {
        const bool shared = std::string_view(space) == ".shared";
        list.add_code(
            fmt::format("st{}.b128", space), "ll", "ll",
            fmt::format("{{ .reg .b128 %both; mov.b128 %both, {{%a, %b}}; st{0}.b128 [{1}], %both; ld{0}.v2.b64 {{%d0, "
                        "%d1}}, [{1}]; }}",
                        space, shared ? "%cell" : "%mem"));
    }
    list.add_code(
        "st.global.L2::cache_hint.b32", "w", "w",
        "createpolicy.fractional.L2::evict_last.b64 %xl0, 1.0; st.global.L2::cache_hint.b32 [%mem], %a, %xl0; "
        "ld.global.b32 %d0, [%mem];");
}

}  // namespace

void add_memory_forms(FormList& list) {
    list.group("loads");
    add_loads(list);
    list.group("stores");
    add_stores(list);
}

}  // namespace block_attention::conformance
