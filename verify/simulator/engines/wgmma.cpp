#include "verify/simulator/engines/wgmma.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "verify/simulator/engines/shared_operand.h"
#include "verify/simulator/layout/fragments.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/registers_in_flight.h"

namespace block_attention::simulator {

namespace {

constexpr std::uint32_t kRows = 16;
constexpr std::uint32_t kMaxN = 256;

OperandView packed_view(const std::uint16_t* elements, std::uint32_t count, OperandType type, bool negate) {
    return {.data = reinterpret_cast<const std::byte*>(elements),
            .count = count,
            .depth = kMmaK,
            .stride = kMmaK * sizeof(std::uint16_t),
            .depth_stride = sizeof(std::uint16_t),
            .type = type,
            .negate = negate};
}

/// The element of D in a register: with f16 two of them share one.
MatrixPosition position(std::uint32_t lane, std::uint32_t element) { return wgmma_d(0, lane, element); }

}  // namespace

void WgmmaQueue::clear() {
    open_.reset();
    committed_.clear();
    waiting_.clear();
}

void WgmmaQueue::issue(const Wgmma& operation) {
    if (!open_) open_ = std::make_shared<Group>();
    ++open_->left;
    Warp& warp = *operation.issuer.warp;
    for (const Slot slot : operation.d) {
        warp.in_flight().begin(slot, *operation.issuer.instruction);
        open_->registers.push_back(slot);
    }
    waiting_.emplace_back(operation, open_);
    warp.cta().cluster().post([this, &warp] {
        const auto [next, group] = std::move(waiting_.front());
        waiting_.pop_front();
        carry_out(next);
        if (--group->left == 0) warp.cta().wake(Wait::engine);
    });
}

void WgmmaQueue::commit() { committed_.push_back(open_ ? std::exchange(open_, nullptr) : std::make_shared<Group>()); }

bool WgmmaQueue::wait(Warp& warp, std::size_t pending) {
    while (committed_.size() > pending) {
        if (committed_.front()->left != 0) return false;
        for (const Slot slot : committed_.front()->registers) warp.in_flight().end(slot);
        committed_.pop_front();
    }
    return true;
}

void WgmmaQueue::carry_out(const Wgmma& operation) {
    Warp& warp = *operation.issuer.warp;
    const std::uint32_t first_row = warp.index() % 4 * kRows;
    std::array<std::uint16_t, kRows * kMmaK> a{};
    MatrixOperand rows(operation.issuer, "A");
    if (operation.a.empty()) {
        rows.gather(decode_wgmma_descriptor(operation.descriptor_a), operation.major_a, first_row, kRows, a.data());
    } else {
        for (std::uint32_t r = 0; r < operation.a.size(); ++r) {
            const auto* lanes = warp.lanes_of<std::uint32_t>(operation.a[r]);
            for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
                for (std::uint32_t half = 0; half < 2; ++half) {
                    const MatrixPosition at = mma_a(lane, 2 * r + half);
                    a[at.row * kMmaK + at.col] = static_cast<std::uint16_t>(lanes[lane] >> (16 * half));
                }
            }
        }
    }
    std::array<std::uint16_t, kMaxN * kMmaK> b;
    MatrixOperand columns(operation.issuer, "B");
    columns.gather(decode_wgmma_descriptor(operation.descriptor_b), operation.major_b, 0, operation.n, b.data());
    a_.pack(packed_view(a.data(), kRows, operation.type, operation.negate_a));
    b_.pack(packed_view(b.data(), operation.n, operation.type, operation.negate_b));

    const bool half = operation.accumulation.type == AccumulatorType::f16;
    const std::uint32_t per_register = half ? 2 : 1;
    std::array<std::uint32_t, kRows * kMaxN> tile;
    std::array<std::uint32_t*, kRows> tile_rows;
    for (std::uint32_t row = 0; row < kRows; ++row) tile_rows[row] = tile.data() + std::size_t{row} * operation.n;
    for (std::uint32_t r = 0; r < operation.d.size(); ++r) {
        const auto* lanes = warp.lanes_of<std::uint32_t>(operation.d[r]);
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
            for (std::uint32_t e = 0; e < per_register; ++e) {
                const MatrixPosition at = position(lane, r * per_register + e);
                tile_rows[at.row][at.col] = half ? lanes[lane] >> (16 * e) & 0xFFFF : lanes[lane];
            }
        }
    }
    multiply(a_, b_, operation.accumulation, tile_rows);

    const bool poisoned = rows.any_missing() || columns.any_missing();
    const std::string why = rows.any_missing() ? rows.explain() : columns.explain();
    for (std::uint32_t r = 0; r < operation.d.size(); ++r) {
        std::array<std::uint32_t, kWarpSize> values;
        LaneMask poison = operation.accumulation.add_c ? warp.in_flight().poison(operation.d[r]) : 0;
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
            values[lane] = 0;
            for (std::uint32_t e = 0; e < per_register; ++e) {
                const MatrixPosition at = position(lane, r * per_register + e);
                values[lane] |= tile_rows[at.row][at.col] << (half ? 16 * e : 0);
                if (poisoned && (rows.missing(at.row) || columns.missing(at.col))) poison |= LaneMask{1} << lane;
            }
        }
        warp.in_flight().deliver(operation.d[r], values, poison, why);
    }
}

}  // namespace block_attention::simulator
