#include "verify/simulator/layout/mbarrier.h"

namespace block_attention::simulator {
namespace {

constexpr std::int64_t kTxLimit = Mbarrier::kMaxCount;

/// What is wrong with changing a transaction count by `change` bytes.
MbarrierFault check_tx(std::int64_t tx_count, std::int64_t change) {
    if (change > kTxLimit || change < -kTxLimit) return MbarrierFault::tx_operand;
    if (tx_count + change > kTxLimit || tx_count + change < -kTxLimit) return MbarrierFault::tx_count_range;
    return MbarrierFault::none;
}

/// The same for an expect-tx that is part of an arrive: it may reach 2^20.
MbarrierFault check_arrive_tx(std::int64_t tx_count, std::int64_t change) {
    const MbarrierFault fault = check_tx(tx_count, change);
    const bool limit = fault == MbarrierFault::tx_count_range && tx_count + change == kTxLimit + 1;
    return limit ? MbarrierFault::tx_count_limit : fault;
}

}  // namespace

std::string_view describe(MbarrierFault fault) {
    switch (fault) {
        case MbarrierFault::none:
            return "is in order";
        case MbarrierFault::arrive_past_zero:
            return "arrives more often than arrivals are pending: check the count of mbarrier.init and who arrives";
        case MbarrierFault::tx_operand:
            return "has a transaction count of more than 1048575 bytes in one operation";
        case MbarrierFault::tx_count_range:
            return "takes the transaction count out of -1048575..1048575 bytes: split the phase's copies over more "
                   "phases or barriers";
        case MbarrierFault::init_count:
            return "has an arrival count outside 1..1048575";
        case MbarrierFault::tx_count_limit:
            return "makes the transaction count 1048576 bytes, one more than the PTX ISA allows";
        case MbarrierFault::completed:
            return "completes the phase, which .noComplete promises not to do";
        case MbarrierFault::pending_overflow:
            return "makes more than 1048575 arrivals pending";
    }
    return "is unknown";
}

Mbarrier Mbarrier::initialised(std::uint32_t count) {
    const std::uint32_t kept = count & kMaxCount;
    return Mbarrier(pack(0, kept, kept, 0));
}

MbarrierFault Mbarrier::check_init(std::uint32_t count) {
    return count >= 1 && count <= kMaxCount ? MbarrierFault::none : MbarrierFault::init_count;
}

std::uint64_t Mbarrier::pack(std::uint32_t phase, std::uint32_t pending, std::uint32_t expected,
                             std::int32_t tx_count) {
    const std::uint64_t tx_bits = static_cast<std::uint64_t>(tx_count) & ((std::uint64_t{1} << kTxBits) - 1);
    return std::uint64_t{pending} | std::uint64_t{expected} << kExpectedShift | tx_bits << kTxShift |
           std::uint64_t{phase & 3} << kPhaseShift;
}

/// Sets the counts, and moves on to the next phase if they complete this one.
void Mbarrier::set(std::uint32_t pending, std::uint32_t expected, std::int32_t tx_count) {
    const bool complete = pending == 0 && tx_count == 0;
    bits_ = complete ? pack(phase() + 1, expected, expected, 0) : pack(phase(), pending, expected, tx_count);
}

MbarrierFault Mbarrier::expect_tx(std::uint32_t bytes) {
    const MbarrierFault fault = check_tx(tx_count(), bytes);
    if (!is_fatal(fault)) set(pending(), expected(), tx_count() + static_cast<std::int32_t>(bytes));
    return fault;
}

MbarrierFault Mbarrier::complete_tx(std::uint32_t bytes) {
    const MbarrierFault fault = check_tx(tx_count(), -std::int64_t{bytes});
    if (!is_fatal(fault)) set(pending(), expected(), tx_count() - static_cast<std::int32_t>(bytes));
    return fault;
}

MbarrierFault Mbarrier::arrive(std::uint32_t count) {
    if (count > pending()) return MbarrierFault::arrive_past_zero;
    set(pending() - count, expected(), tx_count());
    return MbarrierFault::none;
}

MbarrierFault Mbarrier::arrive_no_complete(std::uint32_t count) {
    const std::uint32_t before = phase();
    const MbarrierFault fault = arrive(count);
    return fault == MbarrierFault::none && phase() != before ? MbarrierFault::completed : fault;
}

MbarrierFault Mbarrier::arrive_expect_tx(std::uint32_t bytes) {
    if (pending() == 0) return MbarrierFault::arrive_past_zero;
    const MbarrierFault fault = check_arrive_tx(tx_count(), bytes);
    if (!is_fatal(fault)) set(pending() - 1, expected(), tx_count() + static_cast<std::int32_t>(bytes));
    return fault;
}

MbarrierFault Mbarrier::arrive_drop(std::uint32_t count) {
    if (count > pending() || count > expected()) return MbarrierFault::arrive_past_zero;
    set(pending() - count, expected() - count, tx_count());
    return MbarrierFault::none;
}

MbarrierFault Mbarrier::arrive_drop_no_complete(std::uint32_t count) {
    const std::uint32_t before = phase();
    const MbarrierFault fault = arrive_drop(count);
    return fault == MbarrierFault::none && phase() != before ? MbarrierFault::completed : fault;
}

MbarrierFault Mbarrier::arrive_drop_expect_tx(std::uint32_t bytes) {
    if (pending() == 0 || expected() == 0) return MbarrierFault::arrive_past_zero;
    const MbarrierFault fault = check_arrive_tx(tx_count(), bytes);
    if (!is_fatal(fault)) set(pending() - 1, expected() - 1, tx_count() + static_cast<std::int32_t>(bytes));
    return fault;
}

MbarrierFault Mbarrier::add_pending() {
    if (pending() == kMaxCount) return MbarrierFault::pending_overflow;
    bits_ = pack(phase(), pending() + 1, expected(), tx_count());
    return MbarrierFault::none;
}

}  // namespace block_attention::simulator
