#pragma once
#include <cstdint>

#include "reference/tensor.h"

#ifndef __CUDACC__
#include "reference/stage.h"
#endif

namespace block_attention {

/// What a kernel of blackwell_tile gets by value.
struct BlackwellTileParameters {
    Strides o;    ///< in elements; for tiles whose rows are not all of the box
    float scale;  ///< of the logits
};

/// The shared memory of a CTA, and its use of Tensor Memory: a tile of kRows rows and keys of kDim elements.
/// A matrix lies there as a tensor copy with the 128-byte swizzle brings it: in blocks of 64 columns, a row of 128
/// bytes in each.
template <int kRows, int kDim>
struct BlackwellTileLayout {
    static constexpr int kThreads = 128;
    static constexpr int kBlockColumns = 64;
    static constexpr int kBlocks = kDim / kBlockColumns;
    static constexpr int kBlockBytes = kRows * 128;
    static constexpr int kMatrixBytes = kBlocks * kBlockBytes;

    struct Shared {
        unsigned char q[kMatrixBytes];  ///< later O
        unsigned char k[kMatrixBytes];
        unsigned char v[kMatrixBytes];
        std::uint64_t loaded;  ///< mbarrier objects, see the kernel
        std::uint64_t scores_done;
        std::uint64_t output_done;
        std::uint32_t tensor_memory;  ///< address of the columns allocated
    };

    // Columns of Tensor Memory, of 32 bits a lane. P, of 16 bits an element, takes the place of S.
    static constexpr int kScores = 0;
    static constexpr int kOutput = kRows;
    static constexpr int kColumns = kRows + kDim <= 128 ? 128 : 256;  ///< a power of two, as tcgen05.alloc wants it
};

#ifndef __CUDACC__
/// One tile a CTA: TMA in, S = Q K^T by tcgen05.mma into Tensor Memory, the softmax in registers, P back into Tensor
/// Memory, O = P V by tcgen05.mma, TMA out. fp16 and bf16, head dims 64 and 128, blocks of up to 128 tokens, layouts
/// that TMA can walk.
const Stage& blackwell_tile_stage();
#endif

}  // namespace block_attention
