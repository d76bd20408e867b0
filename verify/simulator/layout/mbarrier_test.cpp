#include "verify/simulator/layout/mbarrier.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

/// Every case named "H200" repeats a run on that GPU, each fault in its own process.
namespace block_attention::simulator {
namespace {

constexpr std::uint32_t kMax = Mbarrier::kMaxCount;
constexpr auto kNone = MbarrierFault::none;

/// Two digits as the runs printed them: test_wait.parity 0, then 1.
int answers(const Mbarrier& barrier) {
    return 10 * (barrier.test_parity(0) ? 1 : 0) + (barrier.test_parity(1) ? 1 : 0);
}

TEST_CASE("init sets phase 0, the count as expected and pending, and no transactions") {
    for (const std::uint32_t count : {1U, 2U, 128U, kMax}) {
        const Mbarrier barrier = Mbarrier::initialised(count);
        CHECK(barrier.phase() == 0);
        CHECK(barrier.pending() == count);
        CHECK(barrier.expected() == count);
        CHECK(barrier.tx_count() == 0);
        CHECK(Mbarrier::check_init(count) == kNone);
        CHECK(Mbarrier(barrier.bits()) == barrier);
    }
    CHECK(Mbarrier::check_init(0) == MbarrierFault::init_count);
    CHECK(Mbarrier::check_init(kMax + 1) == MbarrierFault::init_count);
}

TEST_CASE("H200: a fresh barrier passes parity 1 at once, and answers alternate with the phases") {
    Mbarrier barrier = Mbarrier::initialised(1);
    for (std::uint32_t phase = 0; phase < 9; ++phase) {
        CHECK(barrier.test_parity(0) == ((phase & 1) != 0));
        CHECK(barrier.test_parity(1) == ((phase & 1) != 1));
        CHECK(barrier.phase() == phase % 4);
        CHECK(barrier.arrive() == kNone);
    }
}

TEST_CASE("H200: only the lowest bit of a parity counts") {
    const Mbarrier barrier = Mbarrier::initialised(2);
    CHECK_FALSE(barrier.test_parity(2));
    CHECK(barrier.test_parity(3));
}

TEST_CASE("H200: bytes may complete before they are expected") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.complete_tx(64) == kNone);
    CHECK(barrier.tx_count() == -64);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.arrive_expect_tx(64) == kNone);
    CHECK(answers(barrier) == 10);
}

TEST_CASE("H200: expect_tx completes a phase whose bytes came early") {
    Mbarrier barrier = Mbarrier::initialised(2);
    CHECK(barrier.complete_tx(64) == kNone);
    CHECK(barrier.arrive(2) == kNone);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.expect_tx(64) == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.pending() == 2);
}

TEST_CASE("H200: an arrive dies while only transactions are outstanding, arrive.expect_tx as well") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.arrive_expect_tx(64) == kNone);
    const Mbarrier before = barrier;
    CHECK(barrier.arrive() == MbarrierFault::arrive_past_zero);
    CHECK(barrier.arrive_expect_tx(64) == MbarrierFault::arrive_past_zero);
    CHECK(barrier.arrive_drop() == MbarrierFault::arrive_past_zero);
    CHECK(barrier.arrive_drop_expect_tx(64) == MbarrierFault::arrive_past_zero);
    CHECK(barrier == before);

    Mbarrier early = Mbarrier::initialised(2);  // the 64 bytes would complete it
    CHECK(early.complete_tx(64) == kNone);
    CHECK(early.arrive(2) == kNone);
    CHECK(early.arrive_expect_tx(64) == MbarrierFault::arrive_past_zero);
}

TEST_CASE("H200: bytes that complete after a phase ended count in the next") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.arrive() == kNone);
    CHECK(barrier.complete_tx(128) == kNone);
    CHECK(barrier.tx_count() == -128);
    CHECK(barrier.arrive() == kNone);
    CHECK(answers(barrier) == 10);  // still the second phase
    CHECK(barrier.expect_tx(128) == kNone);
    CHECK(answers(barrier) == 1);
}

TEST_CASE("H200: more bytes than expected leave the phase open") {
    Mbarrier barrier = Mbarrier::initialised(2);
    CHECK(barrier.expect_tx(64) == kNone);
    CHECK(barrier.arrive(2) == kNone);
    CHECK(barrier.complete_tx(128) == kNone);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.arrive(0) == kNone);
    CHECK(Mbarrier::pending_count(barrier.bits()) == 1U << 20);
}

TEST_CASE("H200: arriving past zero dies") {
    for (const auto& [pending, count] :
         {std::pair{2U, 3U}, std::pair{1U, 2U}, std::pair{2U, kMax + 2}, std::pair{2U, ~0U}}) {
        Mbarrier barrier = Mbarrier::initialised(pending);
        CHECK(barrier.arrive(count) == MbarrierFault::arrive_past_zero);
        CHECK(barrier == Mbarrier::initialised(pending));
    }
}

TEST_CASE("H200: arrive with count 0 has no effect, but tests for completion") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.arrive(0) == kNone);
    CHECK(barrier.arrive_drop(0) == kNone);
    CHECK(barrier == Mbarrier::initialised(1));
    Mbarrier empty = Mbarrier::initialised(0);
    CHECK(answers(empty) == 1);
    CHECK(empty.arrive(0) == kNone);
    CHECK(answers(empty) == 10);
}

TEST_CASE("H200: init with 0 or 2^20 is silent, the first arrive dies") {
    for (const std::uint32_t count : {0U, 1U << 20}) {
        Mbarrier barrier = Mbarrier::initialised(count);
        CHECK(answers(barrier) == 1);
        CHECK(barrier.arrive() == MbarrierFault::arrive_past_zero);
    }
    Mbarrier barrier = Mbarrier::initialised(0);
    CHECK(barrier.expect_tx(64) == kNone);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.complete_tx(64) == kNone);
    CHECK(answers(barrier) == 10);
}

TEST_CASE("H200: 2^20 - 1 arrivals at once work") {
    Mbarrier barrier = Mbarrier::initialised(kMax);
    CHECK(barrier.arrive(kMax) == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.pending() == kMax);
}

TEST_CASE("H200: the transaction count stays within 2^20 - 1 either way, arrive.expect_tx may reach 2^20") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.expect_tx(kMax + 1) == MbarrierFault::tx_operand);
    CHECK(barrier.complete_tx(kMax + 1) == MbarrierFault::tx_operand);
    CHECK(barrier.expect_tx(~0U) == MbarrierFault::tx_operand);
    CHECK(barrier == Mbarrier::initialised(1));
    CHECK(barrier.expect_tx(kMax) == kNone);
    CHECK(barrier.expect_tx(1) == MbarrierFault::tx_count_range);
    CHECK(barrier.expect_tx(kMax) == MbarrierFault::tx_count_range);
    CHECK(barrier.tx_count() == static_cast<std::int32_t>(kMax));

    CHECK(barrier.arrive_expect_tx(2) == MbarrierFault::tx_count_range);
    CHECK(barrier.arrive_expect_tx(1) == MbarrierFault::tx_count_limit);
    CHECK(barrier.tx_count() == 1 << 20);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.complete_tx(kMax) == kNone);
    CHECK(barrier.complete_tx(1) == kNone);
    CHECK(answers(barrier) == 10);

    Mbarrier early = Mbarrier::initialised(1);
    CHECK(early.complete_tx(kMax) == kNone);
    CHECK(early.complete_tx(1) == MbarrierFault::tx_count_range);
    CHECK(early.arrive() == kNone);
    CHECK(answers(early) == 1);
    CHECK(early.expect_tx(kMax) == kNone);
    CHECK(answers(early) == 10);

    Mbarrier operand = Mbarrier::initialised(1);
    CHECK(operand.expect_tx(2) == kNone);
    CHECK(operand.complete_tx(kMax + 1) == MbarrierFault::tx_operand);  // though the sum would be in range
}

TEST_CASE("H200: init works on a barrier in use, completed or half-arrived") {
    Mbarrier half = Mbarrier::initialised(4);
    CHECK(half.arrive(3) == kNone);
    half = Mbarrier::initialised(2);
    CHECK(answers(half) == 1);
    CHECK(half.arrive(2) == kNone);
    CHECK(answers(half) == 10);
}

TEST_CASE("H200: memory that no init wrote takes an arrive or dies of it, depending on its bits") {
    Mbarrier noise(0x5A5A5A5A5A5A5A5A);
    CHECK(noise.arrive() == kNone);
    Mbarrier zeros(0);
    CHECK(zeros.arrive() == MbarrierFault::arrive_past_zero);
}

TEST_CASE("H200: an under-armed phase ends early only when the sum happens to hit zero, an over-armed one never") {
    const auto completes = [](std::uint32_t expected) {
        Mbarrier barrier = Mbarrier::initialised(1);
        CHECK(barrier.arrive_expect_tx(expected) == kNone);
        for (int part = 0; part < 64; ++part) CHECK(barrier.complete_tx(64) == kNone);
        return barrier.phase() != 0;
    };
    for (const std::uint32_t expected : {64U, 2048U, 3072U, 4032U, 4096U}) CHECK(completes(expected));
    for (const std::uint32_t expected : {16U, 100U, 4080U, 4112U, 8192U}) CHECK_FALSE(completes(expected));
}

TEST_CASE("H200: states know the pending count before their arrive, and their phase by its parity") {
    Mbarrier barrier = Mbarrier::initialised(3);
    const std::uint64_t first = barrier.bits();
    CHECK(barrier.arrive(2) == kNone);
    const std::uint64_t second = barrier.bits();
    CHECK(Mbarrier::pending_count(first) == 3);
    CHECK(Mbarrier::pending_count(second) == 1);
    CHECK_FALSE(barrier.test_state(first));
    CHECK(barrier.arrive() == kNone);
    CHECK(barrier.test_state(first));
    CHECK(barrier.test_state(second));

    Mbarrier one = Mbarrier::initialised(1);
    const std::uint64_t state_0 = one.bits();
    CHECK(one.arrive() == kNone);
    CHECK(one.test_state(state_0));
    CHECK_FALSE(one.is_stale(state_0));
    const std::uint64_t state_1 = one.bits();
    CHECK(one.arrive() == kNone);
    CHECK_FALSE(one.test_state(state_0));  // two phases behind looks like the current one
    CHECK(one.is_stale(state_0));
    CHECK(one.test_state(state_1));
    CHECK(one.arrive() == kNone);
    CHECK(one.test_state(state_0));
    CHECK_FALSE(one.test_state(state_1));
    CHECK(one.is_stale(state_1));
    CHECK_FALSE(one.is_stale(one.bits()));
}

TEST_CASE("H200: arrive_drop lowers the count of the phases to come") {
    Mbarrier barrier = Mbarrier::initialised(3);
    CHECK(barrier.arrive(2) == kNone);
    CHECK(barrier.arrive_drop() == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.pending() == 2);
    CHECK(barrier.arrive(2) == kNone);
    CHECK(answers(barrier) == 1);

    Mbarrier last = Mbarrier::initialised(1);
    CHECK(last.arrive_drop() == kNone);
    CHECK(answers(last) == 10);
    CHECK(last.arrive() == MbarrierFault::arrive_past_zero);

    Mbarrier too_many = Mbarrier::initialised(2);
    CHECK(too_many.arrive_drop(3) == MbarrierFault::arrive_past_zero);
    CHECK(too_many == Mbarrier::initialised(2));
}

TEST_CASE("H200: a barrier that everyone dropped still counts bytes") {
    Mbarrier barrier = Mbarrier::initialised(2);
    CHECK(barrier.arrive_drop(1) == kNone);
    CHECK(barrier.arrive_drop(1) == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.expect_tx(64) == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.complete_tx(64) == kNone);
    CHECK(answers(barrier) == 1);
}

TEST_CASE("H200: arrive_drop.expect_tx expects, drops and arrives") {
    Mbarrier barrier = Mbarrier::initialised(2);
    CHECK(barrier.arrive_drop_expect_tx(64) == kNone);
    CHECK(barrier.complete_tx(64) == kNone);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.arrive() == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.pending() == 1);
}

TEST_CASE("H200: .noComplete completes like any other arrive, which the PTX ISA leaves undefined") {
    Mbarrier open = Mbarrier::initialised(3);
    CHECK(open.arrive_no_complete(2) == kNone);
    CHECK(answers(open) == 1);
    CHECK(open.arrive_drop_no_complete(1) == MbarrierFault::completed);
    CHECK(answers(open) == 10);
    CHECK(open.pending() == 2);

    Mbarrier full = Mbarrier::initialised(1);
    CHECK(full.arrive_no_complete(1) == MbarrierFault::completed);
    CHECK(answers(full) == 10);
    CHECK(full.pending() == 1);
    CHECK(full.arrive_no_complete(2) == MbarrierFault::arrive_past_zero);
    CHECK(full.arrive_drop_no_complete(2) == MbarrierFault::arrive_past_zero);
}

TEST_CASE("H200: cp.async.mbarrier.arrive adds an arrival and takes it away") {
    Mbarrier barrier = Mbarrier::initialised(1);
    CHECK(barrier.add_pending() == kNone);
    CHECK(barrier.pending() == 2);
    CHECK(barrier.arrive() == kNone);
    CHECK(answers(barrier) == 1);
    CHECK(barrier.arrive() == kNone);
    CHECK(answers(barrier) == 10);
    CHECK(barrier.pending() == 1);
    Mbarrier full = Mbarrier::initialised(kMax);
    CHECK(full.add_pending() == MbarrierFault::pending_overflow);
    CHECK(full.pending() == kMax);
}

/// The same object without packing: plain fields, each rule of PTX ISA 9.7.13.15.5-7 in a line.
struct PlainBarrier {
    std::int64_t phase = 0;
    std::int64_t pending;
    std::int64_t expected;
    std::int64_t tx = 0;

    void complete_if_done() {
        if (pending != 0 || tx != 0) return;
        ++phase;
        pending = expected;
    }
};

TEST_CASE("random sequences agree with plain counters") {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 6);
        Mbarrier barrier = Mbarrier::initialised(count);
        PlainBarrier plain{0, count, count, 0};
        for (int step = 0; step < 60; ++step) {
            const auto bytes = static_cast<std::uint32_t>(16 * (random() % 5));
            const auto arrivals = static_cast<std::uint32_t>(random() % 3);
            switch (random() % 5) {
                case 0:
                    CHECK(barrier.expect_tx(bytes) == kNone);
                    plain.tx += bytes;
                    break;
                case 1:
                    CHECK(barrier.complete_tx(bytes) == kNone);
                    plain.tx -= bytes;
                    break;
                case 2:
                    if (arrivals > plain.pending) {
                        CHECK(barrier.arrive(arrivals) == MbarrierFault::arrive_past_zero);
                        continue;
                    }
                    CHECK(barrier.arrive(arrivals) == kNone);
                    plain.pending -= arrivals;
                    break;
                case 3:
                    if (plain.pending == 0) continue;
                    CHECK(barrier.arrive_expect_tx(bytes) == kNone);
                    plain.tx += bytes;
                    --plain.pending;
                    break;
                default:
                    if (plain.pending == 0 || plain.expected < 2 || random() % 8 != 0) continue;
                    CHECK(barrier.arrive_drop() == kNone);
                    --plain.expected;
                    --plain.pending;
                    break;
            }
            plain.complete_if_done();
            REQUIRE(barrier.phase() == plain.phase % 4);
            REQUIRE(barrier.pending() == plain.pending);
            REQUIRE(barrier.expected() == plain.expected);
            REQUIRE(barrier.tx_count() == plain.tx);
        }
    }
}

TEST_CASE("faults say what they are, and which ones kill the kernel") {
    std::set<std::string_view> texts;
    for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(MbarrierFault::pending_overflow); ++i) {
        const auto fault = static_cast<MbarrierFault>(i);
        texts.insert(describe(fault));
        CHECK(is_fatal(fault) == (fault == MbarrierFault::arrive_past_zero || fault == MbarrierFault::tx_operand ||
                                  fault == MbarrierFault::tx_count_range));
    }
    CHECK(texts.size() == 8);
}

}  // namespace
}  // namespace block_attention::simulator
