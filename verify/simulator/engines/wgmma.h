#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "verify/simulator/engines/tensor_core.h"
#include "verify/simulator/layout/matrix_descriptor.h"
#include "verify/simulator/machine/issuer.h"

/// wgmma.mma_async (PTX ISA 9.7.15): a warpgroup multiplies 64 x 16 by 16 x N. Each of its four warps computes its own
/// 16 rows, which shares nothing with the others but the operands in shared memory.
namespace block_attention::simulator {

/// The share of one warp in one wgmma.
struct Wgmma {
    Issuer issuer;
    std::uint32_t n = 8;
    OperandType type = OperandType::f16;
    Accumulation accumulation;
    bool negate_a = false;
    bool negate_b = false;
    Major major_a = Major::k;
    Major major_b = Major::k;
    std::uint64_t descriptor_a = 0;  ///< unless A is in registers
    std::uint64_t descriptor_b = 0;
    std::span<const Slot> d;  ///< N / 2 registers of f32, or N / 4 of two f16
    std::span<const Slot> a;  ///< 4 registers, or none
};

/// The wgmmas of a warp, carried out one after the other at times drawn from the seed. Their operands are read and
/// their accumulators written only then.
class WgmmaQueue {
  public:
    void clear();
    void issue(const Wgmma& operation);
    void commit();
    /// Whether all but the newest `pending` committed groups have been carried out. If so their registers are ready.
    bool wait(Warp& warp, std::size_t pending);

  private:
    struct Group {
        std::uint32_t left = 0;  ///< to be carried out
        std::vector<Slot> registers;
    };
    void carry_out(const Wgmma& operation);

    std::shared_ptr<Group> open_;
    std::deque<std::shared_ptr<Group>> committed_;
    std::deque<std::pair<Wgmma, std::shared_ptr<Group>>> waiting_;
    // Memory that is used again.
    PackedRows a_;
    PackedColumns b_;
};

}  // namespace block_attention::simulator
