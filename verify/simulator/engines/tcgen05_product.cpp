/// Products and copies from shared memory into Tensor Memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "verify/simulator/engines/shared_operand.h"
#include "verify/simulator/engines/tcgen05.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr std::uint32_t kColumnsOfA = 8;  ///< 16 elements of 16 bits

OperandView packed_view(const std::vector<std::uint16_t>& elements, std::uint32_t count,
                        InstructionDescriptor::Multiplicand type, bool negate) {
    return {.data = reinterpret_cast<const std::byte*>(elements.data()),
            .count = count,
            .depth = kMmaK,
            .stride = kMmaK * sizeof(std::uint16_t),
            .depth_stride = sizeof(std::uint16_t),
            .type = type == InstructionDescriptor::Multiplicand::bf16 ? OperandType::bf16 : OperandType::f16,
            .negate = negate};
}

/// The lanes of D or A, in sixteens.
std::uint32_t sixteens_of(std::uint32_t m, std::uint32_t first_lane) {
    if (m != 64) return 0xFF;
    return first_lane == 16 ? 0xAA : 0x55;
}

}  // namespace

/// A product, with its operands as far as they have been read.
struct Tcgen05Queue::Product {
    Issuer issuer;
    Tcgen05Multiply operands;
    InstructionDescriptor shape;
    TensorMemoryAddress d;
    bool valid = true;
    std::vector<std::uint16_t> a;
    std::vector<std::uint16_t> b;
    std::optional<MatrixOperand> shared_a;
    std::optional<MatrixOperand> shared_b;
    std::vector<TensorMemory::State> states_of_a;  ///< of each row's cells in Tensor Memory, kWritten if all are
};

void Tcgen05Queue::multiply(const Issuer& issuer, const Tcgen05Multiply& operands) {
    const auto fail = [&](Rule rule, const std::string& why) { issuer.report(rule, [&] { return why; }); };
    const auto operation = std::make_shared<Operation>();
    operation->kind = Kind::multiply;
    operation->issuer = issuer;

    const Verdict instruction =
        check_instruction_descriptor(operands.instruction_descriptor, operands.a_in_tensor_memory);
    if (!instruction.ok()) return fail(Rule::matrix, instruction.error);
    const auto product = std::make_shared<Product>();
    product->issuer = issuer;
    product->operands = operands;
    product->shape = decode_instruction_descriptor(operands.instruction_descriptor);
    product->d = decode_tensor_memory_address(operands.d);
    const InstructionDescriptor& shape = product->shape;
    const Verdict accumulator = check_accumulator(product->d, shape.m, shape.n);
    if (!accumulator.ok()) return fail(Rule::matrix, accumulator.error);
    operation->accumulator = product->d;
    operation->m = shape.m;
    operation->n = shape.n;
    operation->writes[0] = {sixteens_of(shape.m, product->d.lane), product->d.column, product->d.column + shape.n};
    if (!check_allocated(*operation)) return;

    if (shape.a != shape.b) {
        fail(Rule::matrix, fmt::format("the instruction descriptor {:#010x} multiplies f16 with bf16, which is not "
                                       "simulated: give bits 7-9 and 10-12 the same type",
                                       operands.instruction_descriptor));
        product->valid = false;
    }
    if (operands.a_in_tensor_memory) {
        const TensorMemoryAddress a = decode_tensor_memory_address(static_cast<std::uint32_t>(operands.a));
        const Verdict verdict = check_a_in_tensor_memory(a, product->d);
        if (verdict.ok()) {
            operation->reads[0] = {sixteens_of(shape.m, a.lane), a.column, a.column + kColumnsOfA};
            product->valid &= check_allocated(*operation);
        } else {
            fail(Rule::matrix, verdict.error);
            product->valid = false;
        }
    } else if (const Verdict verdict = check_tcgen05_descriptor(operands.a, shape.major_a); !verdict.ok()) {
        fail(Rule::matrix, "operand A: " + verdict.error);
        product->valid = false;
    }
    if (const Verdict verdict = check_tcgen05_descriptor(operands.b, shape.major_b); !verdict.ok()) {
        fail(Rule::matrix, "operand B: " + verdict.error);
        product->valid = false;
    }
    if (operands.add_d) operation->reads[1] = operation->writes[0];

    if (product->valid) {
        product->a.resize(std::size_t{shape.m} * kMmaK);
        product->b.resize(std::size_t{shape.n} * kMmaK);
        if (operands.a_in_tensor_memory) {
            operation->when_ordered = [this, product] { read_a(*product); };
        } else {
            product->shared_a.emplace(issuer, "A");
            read_shared(operation, product, true);
        }
        product->shared_b.emplace(issuer, "B");
        read_shared(operation, product, false);
    }
    operation->execute = [this, product] { carry_out(*product); };
    start(operation);
}

void Tcgen05Queue::read_shared(const OperationPointer& operation, const std::shared_ptr<Product>& product, bool is_a) {
    ++operation->blockers;
    cta_.cluster().post([this, operation, product, is_a] {
        const InstructionDescriptor& shape = product->shape;
        const MatrixDescriptor descriptor = decode_tcgen05_descriptor(is_a ? product->operands.a : product->operands.b);
        MatrixOperand& operand = is_a ? *product->shared_a : *product->shared_b;
        operand.gather(descriptor, is_a ? shape.major_a : shape.major_b, 0, is_a ? shape.m : shape.n,
                       (is_a ? product->a : product->b).data());
        release(operation);
    });
}

void Tcgen05Queue::read_a(Product& product) {
    const TensorMemoryAddress a = decode_tensor_memory_address(static_cast<std::uint32_t>(product.operands.a));
    product.states_of_a.assign(product.shape.m, TensorMemory::kWritten);
    for (std::uint32_t row = 0; row < product.shape.m; ++row) {
        const std::uint32_t lane = tensor_memory_lane(product.shape.m, row, a.lane);
        // The element with the lower k is in the lower half of its cell.
        const std::uint32_t* cells = memory_.cells(lane) + a.column;
        for (std::uint32_t k = 0; k < kMmaK; ++k) {
            product.a[std::size_t{row} * kMmaK + k] = static_cast<std::uint16_t>(cells[k / 2] >> (k % 2 * 16));
        }
        const TensorMemory::State* states = memory_.states(lane) + a.column;
        const auto* missing = std::find_if(states, states + kColumnsOfA,
                                           [](TensorMemory::State state) { return state != TensorMemory::kWritten; });
        if (missing != states + kColumnsOfA) product.states_of_a[row] = *missing;
    }
}

void Tcgen05Queue::carry_out(Product& product) {
    const InstructionDescriptor& shape = product.shape;
    const bool half = shape.d == InstructionDescriptor::Accumulator::f16;
    std::array<std::uint32_t*, kTensorMemoryLanes> rows{};
    std::array<TensorMemory::State*, kTensorMemoryLanes> states{};
    for (std::uint32_t row = 0; row < shape.m; ++row) {
        const std::uint32_t lane = tensor_memory_lane(shape.m, row, product.d.lane);
        if ((product.operands.disabled_lanes[lane / 32] >> (lane % 32) & 1) != 0) continue;
        rows[row] = memory_.cells(lane) + product.d.column;
        states[row] = memory_.states(lane) + product.d.column;
    }
    if (!product.valid) {
        const TensorMemory::State why =
            memory_.note(fmt::format("it rests on a product with faulty operands: {}",
                                     instruction_text(product.issuer.warp->program(),
                                                      product.issuer.warp->index_of(*product.issuer.instruction))));
        for (std::uint32_t row = 0; row < shape.m; ++row) {
            if (rows[row] == nullptr) continue;
            memory_.poison(tensor_memory_lane(shape.m, row, product.d.lane), product.d.column, shape.n, why);
        }
        return;
    }
    a_.pack(packed_view(product.a, shape.m, shape.a, shape.negate_a));
    b_.pack(packed_view(product.b, shape.n, shape.b, shape.negate_b));
    simulator::multiply(a_, b_,
                        {.type = half ? AccumulatorType::f16 : AccumulatorType::f32,
                         .add_c = product.operands.add_d,
                         .scale_exponent = product.operands.scale_exponent},
                        std::span(rows).first(shape.m));

    const bool missing_a = product.shared_a && product.shared_a->any_missing();
    const bool missing_b = product.shared_b->any_missing();
    const TensorMemory::State why_a = missing_a ? memory_.note(product.shared_a->explain()) : TensorMemory::kWritten;
    const TensorMemory::State why_b = missing_b ? memory_.note(product.shared_b->explain()) : TensorMemory::kWritten;
    const auto poison = [&](std::uint32_t row, std::uint32_t n, TensorMemory::State why) {
        rows[row][n] = static_cast<std::uint32_t>(kPoison);
        states[row][n] = why;
    };
    for (std::uint32_t row = 0; row < shape.m; ++row) {
        if (rows[row] == nullptr) continue;
        TensorMemory::State why = TensorMemory::kWritten;
        if (missing_a && product.shared_a->missing(row)) why = why_a;
        if (!product.states_of_a.empty()) why = product.states_of_a[row];
        if (why != TensorMemory::kWritten) {
            memory_.poison(tensor_memory_lane(shape.m, row, product.d.lane), product.d.column, shape.n, why);
            continue;
        }
        if (half) {
            // What becomes of a cell's upper half is not described.
            for (std::uint32_t n = 0; n < shape.n; ++n) rows[row][n] |= static_cast<std::uint32_t>(kPoison) & ~0xFFFFU;
        }
        if (product.operands.add_d) {
            for (std::uint32_t n = 0; n < shape.n; ++n) {
                if (states[row][n] != TensorMemory::kWritten) poison(row, n, states[row][n]);
            }
        } else {
            std::fill_n(states[row], shape.n, TensorMemory::kWritten);
        }
        for (std::uint32_t n = 0; missing_b && n < shape.n; ++n) {
            if (product.shared_b->missing(n)) poison(row, n, why_b);
        }
    }
}

void Tcgen05Queue::copy(const Issuer& issuer, SharedCopyShape shape, std::uint32_t address, std::uint64_t descriptor) {
    const TensorMemoryAddress to = decode_tensor_memory_address(address);
    for (const Verdict& verdict : {check_shared_copy(shape, to), check_tcgen05_descriptor(descriptor, Major::k)}) {
        if (verdict.ok()) continue;
        issuer.report(Rule::tensor_memory, [&] { return verdict.error; });
        return;
    }
    const std::uint32_t chunks = source_chunks(shape);
    const auto operation = std::make_shared<Operation>();
    operation->kind = Kind::copy;
    operation->issuer = issuer;
    operation->writes[0] = {0xFF, to.column, to.column + 4 * chunks};
    if (!check_allocated(*operation)) return;

    struct Source {
        std::vector<std::byte> bytes;
        MatrixOperand operand;
    };
    const std::uint32_t rows = source_rows(shape);
    const auto source = std::make_shared<Source>(
        Source{std::vector<std::byte>(std::size_t{rows} * chunks * kChunkBytes), MatrixOperand(issuer, "s-desc")});
    ++operation->blockers;
    cta_.cluster().post([this, operation, source, rows, chunks, matrix = decode_tcgen05_descriptor(descriptor)] {
        std::byte* next = source->bytes.data();
        for (std::uint32_t row = 0; row < rows; ++row) {
            for (std::uint32_t chunk = 0; chunk < chunks; ++chunk, next += kChunkBytes) {
                std::memcpy(next, source->operand.read(k_major_chunk(matrix, row, chunk), row, 1), kChunkBytes);
            }
        }
        release(operation);
    });
    operation->execute = [this, source, shape, rows, chunks, to] {
        const TensorMemory::State missing =
            source->operand.any_missing() ? memory_.note(source->operand.explain()) : TensorMemory::kWritten;
        const std::size_t bytes = std::size_t{chunks} * kChunkBytes;
        for (std::uint32_t row = 0; row < rows; ++row) {
            const CopyLanes lanes = copy_lanes(shape, row);
            for (std::uint32_t i = 0; i < lanes.count; ++i) {
                std::memcpy(memory_.cells(lanes.lane[i]) + to.column, source->bytes.data() + row * bytes, bytes);
                std::fill_n(memory_.states(lanes.lane[i]) + to.column, bytes / sizeof(std::uint32_t),
                            source->operand.missing(row) ? missing : TensorMemory::kWritten);
            }
        }
    };
    start(operation);
}

}  // namespace block_attention::simulator
