#include "verify/simulator/engines/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "verify/simulator/engines/reduction.h"
#include "verify/simulator/layout/tensor_copy.h"
#include "verify/simulator/machine/address_space.h"
#include "verify/simulator/machine/cell.h"
#include "verify/simulator/machine/cluster.h"
#include "verify/simulator/machine/poison.h"

namespace block_attention::simulator {

namespace {

/// The pieces of a copy are at most so many.
constexpr std::uint32_t kMaxPieces = 4;

/// Runs [begin, end) of a copy, and what was read of them.
struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t bytes = 0;
    std::vector<std::byte> data;
    std::vector<std::byte> shadow;
};

std::vector<Piece> cut(const std::vector<CopyRun>& runs, Random& random) {
    const auto count = std::min<std::size_t>(1 + random.below(kMaxPieces), std::max<std::size_t>(1, runs.size()));
    std::vector<Piece> pieces(count);
    for (std::size_t i = 0; i < count; ++i) {
        Piece& piece = pieces[i];
        piece.begin = runs.size() * i / count;
        piece.end = runs.size() * (i + 1) / count;
        for (std::size_t run = piece.begin; run < piece.end; ++run) piece.bytes += runs[run].bytes;
    }
    return pieces;
}

// Outer memory may be accessed by other host threads at the same time.

template <typename Visit>
void for_each_cell(const std::byte* outer, std::uint32_t bytes, const Visit& visit) {
    std::uint32_t at = 0;
    const bool aligned = reinterpret_cast<std::uintptr_t>(outer) % sizeof(std::uint64_t) == 0;
    if (aligned) {
        for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) visit(at, std::uint64_t{});
    }
    for (; at < bytes; ++at) visit(at, std::uint8_t{});
}

void read_outer(std::byte* to, std::byte* outer, std::uint32_t bytes) {
    for_each_cell(outer, bytes, [&](std::uint32_t at, auto cell) {
        cell = load_cell<decltype(cell)>(outer + at);
        std::memcpy(to + at, &cell, sizeof cell);
    });
}

void write_outer(std::byte* outer, const std::byte* from, std::uint32_t bytes) {
    for_each_cell(outer, bytes, [&](std::uint32_t at, auto cell) {
        std::memcpy(&cell, from + at, sizeof cell);
        store_cell(outer + at, cell);
    });
}

std::byte* data_at(Cta& cta, std::uint32_t offset) { return cta.shared_data() + (offset - kSharedBase); }
std::byte* shadow_at(Cta& cta, std::uint32_t offset) { return cta.shared_shadow() + (offset - kSharedBase); }

void fill_pattern(std::byte* to, std::uint32_t bytes, std::uint64_t pattern) {
    std::uint32_t at = 0;
    for (; at + sizeof pattern <= bytes; at += sizeof pattern) std::memcpy(to + at, &pattern, sizeof pattern);
    std::memcpy(to + at, &pattern, bytes - at);
}

/// Reports a copy that outlives a CTA whose memory it uses. Returns whether it does.
bool outlives(const Issuer& issuer, Cta& cta, std::string_view what) {
    if (!cta.finished()) return false;
    issuer.report(Rule::still_running, [&] {
        return fmt::format("CTA {} of the cluster has exited while this copy had yet to {} its shared memory",
                           cta.rank(), what);
    });
    return true;
}

void complete_transaction(const Issuer& issuer, Cta& cta, std::uint32_t offset, std::uint32_t bytes) {
    if (outlives(issuer, cta, "signal an mbarrier in")) return;
    const MbarrierOutcome outcome = cta.operate_mbarrier(offset, MbarrierOperation::complete_tx, bytes);
    if (!outcome.fault.empty()) {
        issuer.report(Rule::mbarrier, [&] {
            return fmt::format("completing {} bytes on the mbarrier object at {:#x}, it {}", bytes, offset,
                               outcome.fault);
        });
    }
    if (outcome.fatal) cta.stop();
}

// Copies to shared memory.

void read(const CopyToShared& copy, Piece& piece) {
    piece.data.resize(piece.bytes);
    piece.shadow.assign(piece.bytes, std::byte{1});
    const std::uint64_t fill = copy.fill * std::uint64_t{0x0001000100010001};
    std::uint32_t at = 0;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
        const CopyRun& run = copy.runs[i];
        std::byte* to = piece.data.data() + at;
        if (run.outer == nullptr) {
            fill_pattern(to, run.bytes, fill);
        } else {
            read_outer(to, run.outer, run.bytes);
            convert_loaded(copy.conversion, {to, run.bytes});
            if (run.outer_shadow != nullptr) read_outer(piece.shadow.data() + at, run.outer_shadow, run.bytes);
        }
        at += run.bytes;
    }
}

void write(const CopyToShared& copy, const Piece& piece, Cta& target) {
    if (outlives(copy.issuer, target, "write")) return;
    std::uint32_t at = 0;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
        const CopyRun& run = copy.runs[i];
        std::memcpy(data_at(target, run.shared), piece.data.data() + at, run.bytes);
        std::memcpy(shadow_at(target, run.shared), piece.shadow.data() + at, run.bytes);
        target.note_arrival(run.shared, run.bytes);
        at += run.bytes;
    }
}

void finish(const std::shared_ptr<const CopyToShared>& copy, std::uint32_t bytes, Cta& target) {
    if (!copy->barrier) return;
    const std::uint32_t offset = copy->barrier->offset;
    target.cluster().post(
        [copy, bytes, offset, &target] { complete_transaction(copy->issuer, target, offset, bytes); });
}

// Copies from shared memory.

/// Reports the first byte that was never written, or that another copy has yet to bring.
void check_written(const CopyFromShared& copy, const Piece& piece) {
    const auto missing = std::ranges::find(piece.shadow, std::byte{0});
    if (missing == piece.shadow.end()) return;
    auto at = static_cast<std::uint32_t>(missing - piece.shadow.begin());
    std::size_t run = piece.begin;
    while (at >= copy.runs[run].bytes) at -= copy.runs[run++].bytes;
    copy.issuer.report(Rule::uninitialized_read, [&] {
        return fmt::format(
            "the copy reads the byte of shared memory at {:#x}, which was never written or has yet to arrive",
            copy.runs[run].shared + at);
    });
}

void read(const CopyFromShared& copy, Piece& piece) {
    piece.data.resize(piece.bytes);
    piece.shadow.resize(piece.bytes);
    if (outlives(copy.issuer, *copy.source, "read")) return;
    std::uint32_t at = 0;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
        const CopyRun& run = copy.runs[i];
        std::memcpy(piece.data.data() + at, data_at(*copy.source, run.shared), run.bytes);
        std::memcpy(piece.shadow.data() + at, shadow_at(*copy.source, run.shared), run.bytes);
        at += run.bytes;
    }
    check_written(copy, piece);
}

void write(const CopyFromShared& copy, const Piece& piece) {
    if (copy.target != nullptr && outlives(copy.issuer, *copy.target, "write")) return;
    std::uint32_t at = 0;
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
        const CopyRun& run = copy.runs[i];
        if (copy.reduction) {
            reduce(*copy.reduction, run.outer, {piece.data.data() + at, run.bytes});
        } else {
            write_outer(run.outer, piece.data.data() + at, run.bytes);
            if (run.outer_shadow != nullptr) write_outer(run.outer_shadow, piece.shadow.data() + at, run.bytes);
        }
        at += run.bytes;
    }
}

}  // namespace

void start(CopyToShared started) {
    Cta& issuing = started.issuer.cta();
    Cluster& cluster = issuing.cluster();
    for (Cta* target : started.targets) {
        for (const CopyRun& run : started.runs) {
            fill_pattern(data_at(*target, run.shared), run.bytes, kPoison);
            std::memset(shadow_at(*target, run.shared), 0, run.bytes);
        }
    }
    auto copy = std::make_shared<const CopyToShared>(std::move(started));
    auto pieces = cut(copy->runs, cluster.random());
    auto left = std::make_shared<std::size_t>(pieces.size() * copy->targets.size());
    const auto complete = [copy, left, &issuing] {
        if (--*left != 0) return;
        for (const auto& group : copy->groups) group->finish();
        issuing.wake(Wait::engine);
    };
    auto reads_left = std::make_shared<std::size_t>(pieces.size());
    for (Piece& cut_piece : pieces) {
        auto piece = std::make_shared<Piece>(std::move(cut_piece));
        cluster.post([copy, piece, complete, reads_left, &cluster] {
            read(*copy, *piece);
            if (--*reads_left == 0) {
                for (const auto& group : copy->groups) group->finish_read();
            }
            for (Cta* target : copy->targets) {
                cluster.post([copy, piece, complete, target] {
                    write(*copy, *piece, *target);
                    finish(copy, piece->bytes, *target);
                    complete();
                });
            }
        });
    }
}

void start(CopyFromShared started) {
    Cta& issuing = started.issuer.cta();
    Cluster& cluster = issuing.cluster();
    const auto copy = std::make_shared<const CopyFromShared>(std::move(started));
    auto pieces = cut(copy->runs, cluster.random());
    auto reads_left = std::make_shared<std::size_t>(pieces.size());
    auto writes_left = std::make_shared<std::size_t>(pieces.size());
    for (Piece& cut_piece : pieces) {
        auto piece = std::make_shared<Piece>(std::move(cut_piece));
        cluster.post([copy, piece, reads_left, writes_left, &issuing, &cluster] {
            read(*copy, *piece);
            if (--*reads_left == 0 && copy->group) {
                copy->group->finish_read();
                issuing.wake(Wait::engine);
            }
            cluster.post([copy, piece, writes_left, &issuing, &cluster] {
                write(*copy, *piece);
                if (copy->barrier) {
                    cluster.post([copy, piece] {
                        complete_transaction(copy->issuer, *copy->target, copy->barrier->offset, piece->bytes);
                    });
                }
                if (--*writes_left != 0 || !copy->group) return;
                copy->group->finish();
                issuing.wake(Wait::engine);
            });
        });
    }
}

}  // namespace block_attention::simulator
