// One function an instruction: the PTX of the Hopper and Blackwell kernels, and nothing else. Section numbers are of
// the PTX ISA 9.1. Shared memory is addressed by its 32-bit window address, as the instructions want it; Tensor Memory
// by lane << 16 | column. Every asm that orders or moves memory clobbers "memory", so that the compiler keeps ordinary
// accesses on their side of it.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace block_attention::ptx {

/// Address in the CTA's shared window of something in shared memory.
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// elect.sync (9.7.13.14): true in one lane of a converged warp, always the same one.
__device__ __forceinline__ bool elect_one() {
    std::uint32_t elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(elected));
    return elected != 0;
}

/// bar.sync (9.7.13.1): named barrier `id` for `threads` threads.
__device__ __forceinline__ void named_barrier(std::uint32_t id, std::uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// mbarrier (9.7.13.15)

__device__ __forceinline__ void mbarrier_init(std::uint64_t& barrier, std::uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(count) : "memory");
}

/// Makes this thread's mbarrier.init visible to the cluster and to asynchronous operations (9.7.13.4).
__device__ __forceinline__ void fence_mbarrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(std::uint64_t& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

/// Announces `bytes` of asynchronous copies, and arrives.
__device__ __forceinline__ void mbarrier_arrive_expect(std::uint64_t& barrier, std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
}

/// mapa (9.7.9.23) and a remote arrive: at the same barrier of the CTA with that rank in the cluster.
__device__ __forceinline__ void mbarrier_arrive_remote(std::uint64_t& barrier, std::uint32_t cta) {
    std::uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(&barrier)), "r"(cta));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
}

/// Returns once the phase of that parity is over: 0 for the first, third, ...; a fresh barrier counts as past its
/// parity 1. try_wait may give up early, hence the loop.
__device__ __forceinline__ void mbarrier_wait(std::uint64_t& barrier, std::uint32_t parity) {
    std::uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(shared_address(&barrier)), "r"(parity)
                     : "memory");
    } while (done == 0);
}

/// The same, for a barrier that other CTAs of the cluster arrive at or copy to.
__device__ __forceinline__ void mbarrier_wait_cluster(std::uint64_t& barrier, std::uint32_t parity) {
    std::uint32_t done;
    do {
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.b32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(shared_address(&barrier)), "r"(parity)
            : "memory");
    } while (done == 0);
}

// Clusters (9.7.13.3)

__device__ __forceinline__ std::uint32_t cluster_cta_rank() {
    std::uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Tensor copies (9.7.9.27.1); coordinate x is the contiguous dimension's.

__device__ __forceinline__ void tma_load(void* to, const CUtensorMap& map, std::uint32_t x, std::uint32_t y,
                                         std::uint64_t& barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
            "r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier))
        : "memory");
}

/// Writes to the same place, and signals the same barrier, in every CTA of the cluster that `ctas` has a bit for.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap& map, std::uint32_t x, std::uint32_t y,
                                                   std::uint64_t& barrier, std::uint16_t ctas) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier)), "h"(ctas)
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, std::uint32_t x, std::uint32_t y, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
                 "r"(y), "r"(shared_address(from))
                 : "memory");
}

/// The same for tensors of four dimensions.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap& map, std::int32_t x, std::int32_t y,
                                         std::int32_t z, std::int32_t w, std::uint64_t& barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
        "[%6];" ::"r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(&barrier))
        : "memory");
}

__device__ __forceinline__ void tma_store(const CUtensorMap& map, std::int32_t x, std::int32_t y, std::int32_t z,
                                          std::int32_t w, const void* from) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(from))
                 : "memory");
}

/// Closes the bulk group of this thread's stores (9.7.9.25.3.1).
__device__ __forceinline__ void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Returns once all of this thread's stores have read their shared memory (9.7.9.25.3.2).
__device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

/// Between this thread's ordinary accesses of shared memory and asynchronous ones (9.7.13.4).
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// The 14 bits of a matrix descriptor that hold an operand's address (9.7.15.5.1.2.2).
__device__ __forceinline__ std::uint64_t descriptor_address(const void* operand) {
    return (shared_address(operand) & 0x3FFFF) >> 4;
}

// clang-format off
#define BLOCK_ATTENTION_8(constraint, r, i)                                                                           \
    constraint((r)[i]), constraint((r)[(i) + 1]), constraint((r)[(i) + 2]), constraint((r)[(i) + 3]),                 \
    constraint((r)[(i) + 4]), constraint((r)[(i) + 5]), constraint((r)[(i) + 6]), constraint((r)[(i) + 7])
#define BLOCK_ATTENTION_16(constraint, r, i) BLOCK_ATTENTION_8(constraint, r, i), BLOCK_ATTENTION_8(constraint, r, (i) + 8)
#define BLOCK_ATTENTION_32(constraint, r, i) BLOCK_ATTENTION_16(constraint, r, i), BLOCK_ATTENTION_16(constraint, r, (i) + 16)
// clang-format on

// wgmma, sm_90a (9.7.15)

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Returns once at most kPending of the warpgroup's newest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// D = A B, plus D if `accumulate`: 64 x 128, over K = 16, bf16 factors in shared memory, A K-major and B MN-major.
/// Thread t holds rows t / 32 * 16 + t % 32 / 4 and 8 further, columns 8 i + t % 4 * 2 and the next.
__device__ __forceinline__ void wgmma_m64n128k16_bf16(float (&d)[64], std::uint64_t a, std::uint64_t b,
                                                      bool accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 1;\n}"
        : BLOCK_ATTENTION_32("+f", d, 0), BLOCK_ATTENTION_32("+f", d, 32)
        : "l"(a), "l"(b), "r"(static_cast<std::uint32_t>(accumulate))
        : "memory");
}

// tcgen05, sm_100a (9.7.16)

/// Allocates `columns` columns of Tensor Memory (9.7.16.7) and writes their address to shared memory. By a whole warp.
__device__ __forceinline__ void tcgen05_alloc(std::uint32_t& address, std::uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)),
                 "r"(columns)
                 : "memory");
}

__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
}

__device__ __forceinline__ void tcgen05_dealloc(std::uint32_t address, std::uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

/// Before whatever tells another thread of this thread's tcgen05 operations (9.7.16.6.4).
__device__ __forceinline__ void tcgen05_fence_before() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

/// After whatever told this thread of another's.
__device__ __forceinline__ void tcgen05_fence_after() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// D = A B, plus D if `accumulate`, over K = 16 (9.7.16.10.9.1): both factors in shared memory. By one thread.
__device__ __forceinline__ void tcgen05_mma(std::uint32_t d, std::uint64_t a, std::uint64_t b,
                                            std::uint32_t instruction, bool accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
        "l"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
        : "memory");
}

/// The same with A in Tensor Memory.
__device__ __forceinline__ void tcgen05_mma_tmem_a(std::uint32_t d, std::uint32_t a, std::uint64_t b,
                                                   std::uint32_t instruction, bool accumulate) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(
            d),
        "r"(a), "l"(b), "r"(instruction), "r"(static_cast<std::uint32_t>(accumulate))
        : "memory");
}

/// Arrives at the barrier once all earlier products of this thread are done (9.7.16.12).
__device__ __forceinline__ void tcgen05_commit(std::uint64_t& barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&barrier))
        : "memory");
}

/// Loads 32 lanes x 32 columns (9.7.16.8.3): lane l of the warp holds lane l of Tensor Memory, register i column i.
__device__ __forceinline__ void tcgen05_ld_32x32b_x32(float (&r)[32], std::uint32_t address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : BLOCK_ATTENTION_32("=f", r, 0)
        : "r"(address)
        : "memory");
}

/// Loads 16 lanes x 32 columns: lane l of the warp holds in register i the element of row l / 4 + i / 2 % 2 * 8 and
/// column i / 4 * 8 + l % 4 * 2 + i % 2.
__device__ __forceinline__ void tcgen05_ld_16x256b_x4(float (&r)[16], std::uint32_t address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.16x256b.x4.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15}, [%16];"
        : BLOCK_ATTENTION_16("=f", r, 0)
        : "r"(address)
        : "memory");
}

/// Stores 32 lanes x 32 columns, laid out like the load.
__device__ __forceinline__ void tcgen05_st_32x32b_x32(std::uint32_t address, const std::uint32_t (&r)[32]) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "
        "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31};" ::
            BLOCK_ATTENTION_32("r", r, 0),
        "r"(address)
        : "memory");
}

/// Returns once this thread's loads from Tensor Memory are done (9.7.16.8.5).
__device__ __forceinline__ void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

/// Returns once this thread's stores to Tensor Memory are done.
__device__ __forceinline__ void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

/// cvt.rn.f16x2.f32 (9.7.9.22): both rounded to nearest even, `low` in the low half.
__device__ __forceinline__ std::uint32_t pack_fp16(float low, float high) {
    std::uint32_t packed;
    asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/// cvt.rn.bf16x2.f32 (9.7.9.22): both rounded to nearest even, `low` in the low half. Volatile, so that it stays
/// behind the wait for its operands.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
    std::uint32_t packed;
    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

}  // namespace block_attention::ptx
