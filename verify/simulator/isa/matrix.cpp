/// Matrix instructions that a warp executes synchronously: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 to 17)
/// and the dense mma.sync of 16-bit and tf32 operands (9.7.14.5.7, 8 and 14).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/isa/aligned.h"
#include "verify/simulator/isa/decoder.h"
#include "verify/simulator/isa/lanes.h"
#include "verify/simulator/isa/memory.h"
#include "verify/simulator/layout/fragments.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cell.h"
#include "verify/simulator/machine/memory_access.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

using Registers = Lanes<std::uint32_t>;

/// A register's lanes; those of lanes that don't take part are poison.
Registers values_of(const Warp& warp, Slot slot) {
    Registers values;
    std::copy_n(warp.lanes_of<std::uint32_t>(slot), kWarpSize, values.begin());
    if (warp.active() != kAllLanes) [[unlikely]] {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            if ((warp.active() >> lane & 1) == 0) values[lane] = static_cast<std::uint32_t>(kPoison);
        }
    }
    return values;
}

/// The slots of operand `i`, which is a vector of `count` 32-bit registers.
template <typename SlotOf>
void add_vector(Decoder& d, std::size_t i, std::size_t count, std::vector<Slot>& slots, SlotOf slot_of) {
    const ptx::Operand& operand = d.operand(i);
    if (operand.kind != ptx::Operand::Kind::vector || operand.elements.size() != count) {
        d.refuse_operand(operand, fmt::format("a vector of {} 32-bit registers in braces is needed", count));
    }
    for (const auto& element : operand.elements) slots.push_back(slot_of(element));
}

void add_sources(Decoder& d, std::size_t i, std::size_t count, std::vector<Slot>& slots) {
    add_vector(d, i, count, slots, [&](const ptx::Operand& element) { return d.source(element, Type::b32); });
}

void add_destinations(Decoder& d, std::size_t i, std::size_t count, std::vector<Slot>& slots) {
    add_vector(d, i, count, slots, [&](const ptx::Operand& element) { return d.destination(element, Type::b32); });
}

void take_sync_aligned(Decoder& d) {
    const bool sync = d.take("sync");
    if (!d.take("aligned") || !sync) d.refuse("its form has .sync.aligned");
}

// ldmatrix, stmatrix, movmatrix: 8 x 8 matrices of 16-bit elements. A row, 16 bytes, is in shared memory at the address
// that lane 8 i + row gives for matrix i.

constexpr unsigned kMatrixRows = 8;
constexpr unsigned kRowBytes = 16;

/// Up to four matrices, row after row.
using Rows = std::array<std::uint16_t, std::size_t{kWarpSize} * kMatrixRows>;

/// Where an element of a lane's register of matrix number `matrix` is.
template <bool transposed>
constexpr std::size_t place_in_rows(unsigned matrix, unsigned lane, unsigned number) {
    const MatrixPosition at = ldmatrix_element(lane, number, transposed);
    return std::size_t{ldmatrix_address_lane(matrix, at.row)} * kMatrixRows + at.col;
}

/// The register of a matrix.
template <bool transposed>
Registers gather_matrix(const Rows& rows, unsigned matrix) {
    alignas(64) Registers result;
    if constexpr (transposed) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
            const std::uint32_t lower = rows[place_in_rows<true>(matrix, lane, 0)];
            const std::uint32_t upper = rows[place_in_rows<true>(matrix, lane, 1)];
            result[lane] = lower | upper << 16;
        }
    } else {
        // The two elements are neighbours, and so are those of neighbouring lanes.
        static_assert(place_in_rows<false>(3, 0, 1) == 3 * 64 + 1 && place_in_rows<false>(3, 31, 1) == 3 * 64 + 63);
        std::memcpy(result.data(), &rows[place_in_rows<false>(matrix, 0, 0)], sizeof(result));
    }
    return result;
}

/// Puts the matrix that a register holds into its rows.
template <bool transposed>
void scatter_matrix(const Registers& values, unsigned matrix, Rows& rows) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        for (unsigned number = 0; number < 2; ++number) {
            rows[place_in_rows<transposed>(matrix, lane, number)] =
                static_cast<std::uint16_t>(values[lane] >> (16 * number));
        }
    }
}

/// Whether a generic address is one of shared memory.
bool is_shared(std::uint64_t address) { return (address & ~(kWindowBytes - 1)) == kSharedWindow; }

/// Finds the rows of `matrices` matrices. Lanes beyond the last row need no address.
void find_rows(Warp& warp, const Decoded& i, AccessKind kind, std::size_t matrices, WarpAccess& access) {
    const LaneMask taking_part = warp.active();
    LaneMask giving = taking_part & (kAllLanes >> (kWarpSize - matrices * kMatrixRows));
    access.lanes = 0;
    access.uniform = false;
    if (giving == 0) return;
    warp.set_active(giving);
    auto addresses = lane_addresses(warp, i, i.slots[0]);
    if (i.generic) {
        for (LaneMask left = giving; left != 0; left &= left - 1) {
            const auto lane = static_cast<unsigned>(std::countr_zero(left));
            if (is_shared(addresses[lane])) continue;
            warp.report(Rule::out_of_bounds, i, LaneMask{1} << lane, [&] {
                return fmt::format("the row at {:#x} is not in shared memory, where the matrices must be",
                                   addresses[lane]);
            });
            giving &= ~(LaneMask{1} << lane);
        }
        for (unsigned lane = 0; lane < kWarpSize && giving != 0; ++lane) {
            if ((giving >> lane & 1) == 0) addresses[lane] = addresses[std::countr_zero(giving)];
        }
        warp.set_active(giving);
    }
    constexpr std::uint32_t kAllBytes = (1U << kRowBytes) - 1;
    if (giving != 0) find_bytes(warp, i, kind, addresses, kAllBytes, access);
    warp.set_active(taking_part);
}

template <bool transposed>
void load_matrices(Warp& warp, const Decoded& i) {
    WarpAccess access;
    find_rows(warp, i, AccessKind::load, i.list.size(), access);
    alignas(64) Rows rows;
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        const bool found = (access.lanes >> lane & 1) != 0;
        std::byte* row = access.data[access.uniform ? 0 : lane];
        for (unsigned half = 0; half < 2; ++half) {
            const std::uint64_t bits = found ? load_cell<std::uint64_t>(row + 8 * half) : kPoison;
            std::memcpy(&rows[lane * kMatrixRows + 4 * half], &bits, sizeof(bits));
        }
    }
    for (unsigned matrix = 0; matrix < i.list.size(); ++matrix) {
        warp.commit(i.list[matrix], gather_matrix<transposed>(rows, matrix));
    }
}

template <bool transposed>
void store_matrices(Warp& warp, const Decoded& i) {
    alignas(64) Rows rows;
    for (unsigned matrix = 0; matrix < i.list.size(); ++matrix) {
        warp.require(i, i.list[matrix]);
        scatter_matrix<transposed>(values_of(warp, i.list[matrix]), matrix, rows);
    }
    WarpAccess access;
    find_rows(warp, i, AccessKind::store, i.list.size(), access);
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        for (unsigned half = 0; half < 2; ++half) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &rows[lane * kMatrixRows + 4 * half], sizeof(bits));
            store_cell(access.data[lane] + 8 * half, bits);
            if (access.shadowed && access.shadow[lane] != nullptr) {
                store_cell(access.shadow[lane] + 8 * half, kWritten<std::uint64_t>);
            }
        }
    }
}

void transpose_matrix(Warp& warp, const Decoded& i) {
    warp.require(i, i.slots[1]);
    Rows rows;
    scatter_matrix<false>(values_of(warp, i.slots[1]), 0, rows);
    warp.commit(i.slots[0], gather_matrix<true>(rows, 0));
}

void take_shape(Decoder& d) {
    for (const std::string_view other : {"m16n16", "m8n16", "m16n8"}) {
        if (d.take(other)) d.refuse(fmt::format("shape .{} is not simulated, .m8n8 with .b16 is", other));
    }
    const bool shape = d.take("m8n8");
    if (!d.take("b16") || !shape) d.refuse("its shape and type are .m8n8 and .b16");
}

std::size_t take_matrices(Decoder& d) {
    const auto count = d.take_one<std::size_t>({{"x1", 1}, {"x2", 2}, {"x4", 4}});
    if (!count) d.refuse("the number of matrices is missing: .x1, .x2 or .x4");
    return *count;
}

/// Operand `i`: the rows' addresses, in shared memory or generic.
void take_row_address(Decoder& d, std::size_t i, std::optional<ptx::Space> space) {
    d.address(i, space, 0);
    d.result.bytes = kRowBytes;
}

std::optional<ptx::Space> take_shared(Decoder& d) {
    return d.take_one<ptx::Space>({{"shared", ptx::Space::shared}, {"shared::cta", ptx::Space::shared}});
}

void decode_load_matrix(Decoder& d) {
    take_sync_aligned(d);
    take_shape(d);
    const std::size_t matrices = take_matrices(d);
    const bool transposed = d.take("trans");
    const auto space = take_shared(d);
    d.finish_modifiers();
    d.expect_operands(2);
    std::vector<Slot> slots;
    add_destinations(d, 0, matrices, slots);
    d.result.list = d.builder().keep(slots);
    take_row_address(d, 1, space);
    d.result.execute = transposed ? &execute_aligned<load_matrices<true>> : &execute_aligned<load_matrices<false>>;
}

void decode_store_matrix(Decoder& d) {
    take_sync_aligned(d);
    take_shape(d);
    const std::size_t matrices = take_matrices(d);
    const bool transposed = d.take("trans");
    const auto space = take_shared(d);
    d.finish_modifiers();
    d.expect_operands(2);
    take_row_address(d, 0, space);
    std::vector<Slot> slots;
    add_sources(d, 1, matrices, slots);
    d.result.list = d.builder().keep(slots);
    d.result.execute = transposed ? &execute_aligned<store_matrices<true>> : &execute_aligned<store_matrices<false>>;
}

void decode_move_matrix(Decoder& d) {
    take_sync_aligned(d);
    take_shape(d);
    if (!d.take("trans")) d.refuse("its form has .trans");
    d.finish_modifiers();
    d.expect_operands(2);
    d.result.slots[0] = d.destination(0, Type::b32);
    d.result.slots[1] = d.source(1, Type::b32);
    d.result.execute = &execute_aligned<transpose_matrix>;
}

// mma.sync: the list has the registers of D, A, B and C.

constexpr unsigned kRowsOfA = 16;
constexpr unsigned kColumnsOfB = 8;

struct MmaForm {
    OperandType operands = OperandType::f16;
    AccumulatorType accumulator = AccumulatorType::f32;
    unsigned depth = 16;

    bool operator==(const MmaForm&) const = default;

    /// 32-bit words of a row of A or column of B. A register of A or B is one.
    constexpr unsigned words() const { return operands == OperandType::tf32 ? depth : depth / 2; }
    constexpr unsigned a_registers() const { return kRowsOfA * words() / kWarpSize; }
    constexpr unsigned b_registers() const { return kColumnsOfB * words() / kWarpSize; }
    constexpr unsigned c_registers() const { return accumulator == AccumulatorType::f32 ? 4 : 2; }
};

constexpr unsigned kGroup = 4;  ///< Lanes that hold neighbours: of a row of A, of a column of B.

/// Where the word of A, rows one after the other, is that a lane holds in a register; and that of B, column by column.
template <MmaForm form>
constexpr std::size_t place_in_a(std::uint32_t lane, std::uint32_t number) {
    constexpr bool kPairs = form.operands != OperandType::tf32;
    const MatrixPosition at = kPairs ? mma_a(lane, 2 * number) : mma_a_tf32(lane, number);
    return at.row * form.words() + (kPairs ? at.col / 2 : at.col);
}
template <MmaForm form>
constexpr std::size_t place_in_b(std::uint32_t lane, std::uint32_t number) {
    constexpr bool kPairs = form.operands != OperandType::tf32;
    const MatrixPosition at = kPairs ? mma_b(lane, 2 * number) : mma_b_tf32(lane, number);
    return at.col * form.words() + (kPairs ? at.row / 2 : at.row);
}

/// The registers of A or B in memory: the elements side by side along k.
template <std::size_t words, std::size_t (*place)(std::uint32_t, std::uint32_t)>
std::array<std::uint32_t, words> gather(Warp& warp, const Decoded& i, std::span<const Slot> slots) {
    std::array<std::uint32_t, words> result;
    for (std::uint32_t number = 0; number < words / kWarpSize; ++number) {
        warp.require(i, slots[number]);
        const Registers values = values_of(warp, slots[number]);
        for (unsigned lane = 0; lane < kWarpSize; lane += kGroup) {
            std::copy_n(&values[lane], kGroup, &result[place(lane, number)]);
        }
    }
    return result;
}

template <MmaForm form>
OperandView view_of(const std::uint32_t* words, unsigned count) {
    return {.data = reinterpret_cast<const std::byte*>(words),
            .count = count,
            .depth = form.depth,
            .stride = 4 * std::ptrdiff_t{form.words()},
            .depth_stride = form.operands == OperandType::tf32 ? 4 : 2,
            .type = form.operands};
}

/// C or D, column by column: A and B change places, which is faster (see multiply).
using Tile = std::array<std::uint32_t, std::size_t{kColumnsOfB} * kRowsOfA>;

/// Calls visit(lane, part, the element's place in a tile) for each element in register `number` of C or D. Lanes that
/// hold neighbours of a column come one after the other.
template <AccumulatorType accumulator, typename Visit>
void for_each_element(unsigned number, Visit visit) {
    constexpr unsigned kElements = accumulator == AccumulatorType::f32 ? 1 : 2;
    for (unsigned part = 0; part < kElements; ++part) {
        for (unsigned first = 0; first < kGroup; ++first) {
            for (unsigned lane = first; lane < kWarpSize; lane += kGroup) {
                const MatrixPosition at = mma_c(lane, number * kElements + part);
                visit(lane, part, at.col * kRowsOfA + at.row);
            }
        }
    }
}

template <AccumulatorType accumulator>
Tile load_tile(Warp& warp, const Decoded& i, std::span<const Slot> slots) {
    Tile tile;
    for (unsigned number = 0; number < slots.size(); ++number) {
        warp.require(i, slots[number]);
        const Registers values = values_of(warp, slots[number]);
        for_each_element<accumulator>(number, [&](unsigned lane, unsigned part, std::size_t place) {
            tile[place] = values[lane] >> (16 * part);
        });
    }
    return tile;
}

template <AccumulatorType accumulator>
void store_tile(Warp& warp, std::span<const Slot> slots, const Tile& tile) {
    for (unsigned number = 0; number < slots.size(); ++number) {
        alignas(64) Registers result;
        for_each_element<accumulator>(number, [&](unsigned lane, unsigned part, std::size_t place) {
            const std::uint32_t value = tile[place] << (16 * part);
            result[lane] = part == 0 ? value : result[lane] | value;
        });
        warp.commit(slots[number], result);
    }
}

template <MmaForm form>
void multiply_matrices(Warp& warp, const Decoded& i) {
    constexpr unsigned kA = form.c_registers();
    constexpr unsigned kB = kA + form.a_registers();
    constexpr unsigned kC = kB + form.b_registers();
    const auto a = gather<kRowsOfA * form.words(), place_in_a<form>>(warp, i, i.list.subspan(kA));
    const auto b = gather<kColumnsOfB * form.words(), place_in_b<form>>(warp, i, i.list.subspan(kB));
    Tile tile = load_tile<form.accumulator>(warp, i, i.list.subspan(kC));

    static thread_local PackedRows rows;
    static thread_local PackedColumns columns;
    rows.pack(view_of<form>(b.data(), kColumnsOfB));
    columns.pack(view_of<form>(a.data(), kRowsOfA));
    std::array<std::uint32_t*, kColumnsOfB> pointers;
    for (unsigned n = 0; n < kColumnsOfB; ++n) pointers[n] = &tile[std::size_t{n} * kRowsOfA];
    multiply(rows, columns, {.type = form.accumulator}, pointers);
    store_tile<form.accumulator>(warp, i.list.first(kA), tile);
}

struct MmaEntry {
    MmaForm form;
    Execute execute = nullptr;
};

template <OperandType operands, AccumulatorType accumulator, unsigned depth>
constexpr MmaEntry entry() {
    constexpr MmaForm kForm{operands, accumulator, depth};
    return {kForm, &execute_aligned<multiply_matrices<kForm>>};
}

constexpr std::array kMmaForms{
    entry<OperandType::f16, AccumulatorType::f32, 16>(),  entry<OperandType::f16, AccumulatorType::f32, 8>(),
    entry<OperandType::f16, AccumulatorType::f16, 16>(),  entry<OperandType::f16, AccumulatorType::f16, 8>(),
    entry<OperandType::bf16, AccumulatorType::f32, 16>(), entry<OperandType::bf16, AccumulatorType::f32, 8>(),
    entry<OperandType::tf32, AccumulatorType::f32, 8>(),  entry<OperandType::tf32, AccumulatorType::f32, 4>(),
};

/// Refuses by name what mma has beyond the dense products of 16-bit and tf32 elements.
void refuse_other_products(const Decoder& d) {
    struct Other {
        std::string_view modifier;
        std::string_view words;
    };
    static constexpr std::array kOthers{
        Other{"sp", "sparse products"},
        Other{"sp::ordered_metadata", "sparse products"},
        Other{"block_scale", "block-scaled products"},
        Other{"f64", "double-precision products"},
        Other{"e4m3", "products of 8-bit floating-point numbers"},
        Other{"e5m2", "products of 8-bit floating-point numbers"},
        Other{"e3m2", "products of 6-bit floating-point numbers"},
        Other{"e2m3", "products of 6-bit floating-point numbers"},
        Other{"e2m1", "products of 4-bit floating-point numbers"},
        Other{"s8", "integer products"},
        Other{"u8", "integer products"},
        Other{"s4", "integer products"},
        Other{"u4", "integer products"},
        Other{"b1", "one-bit products"},
    };
    for (const auto& other : kOthers) {
        if (std::ranges::find(d.instruction().modifiers, other.modifier) == d.instruction().modifiers.end()) continue;
        d.refuse(fmt::format("{} (.{}) are not simulated, dense ones of .f16, .bf16 and .tf32 are", other.words,
                             other.modifier));
    }
}

/// Takes .row.col, in this order: A row by row, B column by column.
void take_layouts(Decoder& d) {
    std::vector<std::string_view> layouts;
    std::ranges::copy_if(d.instruction().modifiers, std::back_inserter(layouts),
                         [](std::string_view modifier) { return modifier == "row" || modifier == "col"; });
    if (layouts != std::vector<std::string_view>{"row", "col"}) d.refuse("its layouts are .row.col");
    d.ignore({"row", "col"});
}

OperandType operand_type(const Decoder& d, Type type) {
    switch (type) {
        case Type::f16:
            return OperandType::f16;
        case Type::bf16:
            return OperandType::bf16;
        case Type::tf32:
            return OperandType::tf32;
        default:
            d.refuse("A and B are of type .f16, .bf16 or .tf32");
    }
}

void decode_mma(Decoder& d) {
    refuse_other_products(d);
    take_sync_aligned(d);
    const auto depth = d.take_one<unsigned>({{"m16n8k16", 16}, {"m16n8k8", 8}, {"m16n8k4", 4}});
    if (!depth) d.refuse("its shape is not simulated, .m16n8k16, .m16n8k8 and .m16n8k4 are");
    take_layouts(d);
    const Type type_of_d = d.take_type();
    const Type type_of_a = d.take_type();
    const Type type_of_b = d.take_type();
    const Type type_of_c = d.take_type();
    d.finish_modifiers();
    if (type_of_a != type_of_b) d.refuse("A and B must have one type");
    if (type_of_c != type_of_d) d.refuse("C and D must have one type");
    if (type_of_d != Type::f32 && type_of_d != Type::f16) d.refuse("C and D are of type .f32 or .f16");
    const MmaForm form{operand_type(d, type_of_a), type_of_d == Type::f32 ? AccumulatorType::f32 : AccumulatorType::f16,
                       *depth};
    const auto* found = std::ranges::find(kMmaForms, form, &MmaEntry::form);
    if (found == kMmaForms.end()) d.refuse("the instruction does not exist with this shape and these types");

    d.expect_operands(4);
    std::vector<Slot> slots;
    add_destinations(d, 0, form.c_registers(), slots);
    add_sources(d, 1, form.a_registers(), slots);
    add_sources(d, 2, form.b_registers(), slots);
    add_sources(d, 3, form.c_registers(), slots);
    d.result.list = d.builder().keep(slots);
    d.result.execute = found->execute;
}

void decode_wmma(Decoder& d) { d.refuse("wmma is not simulated, mma.sync is"); }

constexpr std::array kOpcodes{
    Opcode{"ldmatrix", decode_load_matrix},
    Opcode{"stmatrix", decode_store_matrix},
    Opcode{"movmatrix", decode_move_matrix},
    Opcode{"mma", decode_mma},
    Opcode{"wmma", decode_wmma},
};

}  // namespace

std::span<const Opcode> matrix_opcodes() { return kOpcodes; }

}  // namespace block_attention::simulator
