// What the comparison is for: results that are wrong the way kernels go wrong must exceed the bound, and the correct
// result must not. The tables that the cases print say by how much.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "verify/bound.h"
#include "verify/compare.h"
#include "verify/emulated_stage.h"

using namespace block_attention;

namespace {

using Index = Eigen::Index;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Two tiles of 64 tokens, of two heads, and what the stage makes of them.
class Scene {
  public:
    const EmulatedStage stage;
    const DType dtype;

    Scene(const EmulatedStage& emulated, DType type, Index dim)
        : stage(emulated),
          dtype(type),
          owned_(type, 1, 2, 128, dim, 41),
          tiles_(list_tiles(owned_.problem())),
          inputs_(operands(0, 0)) {
        for (std::size_t tile = 0; tile < tiles_.size(); ++tile) {
            outputs_.push_back(solve(operands(tile, 0)));
            store(tile, 0, outputs_.back());
        }
        store(0, 1, solve(operands(0, 1)));
    }

    /// Undoes what a fault may do to head 0.
    void restore() {
        replace_inputs(0, 0, inputs_);
        for (std::size_t tile = 0; tile < tiles_.size(); ++tile) store(tile, 0, outputs_[tile]);
    }
    [[nodiscard]] TileOperands operands(std::size_t tile, Index head) const {
        return owned_.operands(tiles_[tile], head);
    }
    [[nodiscard]] TileMatrix output(std::size_t tile, Index head) const { return owned_.output(tiles_[tile], head); }
    [[nodiscard]] float scale() const { return owned_.problem().scale; }
    [[nodiscard]] TileMatrix solve(const TileOperands& operands) const { return solve(operands, stage); }
    [[nodiscard]] TileMatrix solve(const TileOperands& operands, const EmulatedStage& faulty) const {
        return emulate(faulty, dtype, operands, scale());
    }
    void store(std::size_t tile, Index head, const TileMatrix& values) {
        owned_.store(Operand::o, tiles_[tile], head, values);
    }
    void replace_inputs(std::size_t tile, Index head, const TileOperands& operands) {
        owned_.store(Operand::q, tiles_[tile], head, operands.q);
        owned_.store(Operand::k, tiles_[tile], head, operands.k);
        owned_.store(Operand::v, tiles_[tile], head, operands.v);
    }
    /// Of head 0, where all faults are made.
    [[nodiscard]] Comparison compare() const {
        Problem head = owned_.problem();
        head.heads = 1;
        return compare_forward(head, arithmetic_of(stage, dtype));
    }

  private:
    OwnedProblem owned_;
    std::vector<Tile> tiles_;
    TileOperands inputs_;              ///< of tile 0, head 0
    std::vector<TileMatrix> outputs_;  ///< of head 0, by tile
};

/// A fault in the output of tile 0, head 0, made from the correct one.
struct Fault {
    std::string name;
    std::function<TileMatrix(Scene& scene, TileMatrix correct)> make;
};

/// Every 64 x 64 block transposed, as when a layout takes rows for columns.
TileMatrix transpose_blocks(const TileMatrix& matrix) {
    TileMatrix transposed(64, matrix.cols());
    for (Index column = 0; column < matrix.cols(); column += 64) {
        transposed.middleCols(column, 64) = matrix.middleCols(column, 64).transpose();
    }
    return transposed;
}

float libm_exp2(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }

/// `correct` with its largest element one step of 2^-fraction_bits (relative) further from the oracle's.
TileMatrix with_wrong_bit(const Scene& scene, TileMatrix correct, int fraction_bits) {
    Index row = 0;
    Index dim = 0;
    correct.cwiseAbs().maxCoeff(&row, &dim);
    double& element = correct(row, dim);
    const double expected = attention(scene.operands(0, 0), static_cast<double>(scene.scale()))(row, dim);
    element += std::copysign(std::ldexp(1.0, std::ilogb(element) - fraction_bits), element - expected);
    return correct;
}

TileOperands yesterday(const Scene& scene) {
    return random_tile(scene.dtype, 64, scene.operands(0, 0).q.cols(), 1, 1000);
}

/// Faults that any stage's bound must see.
const std::vector<Fault> kFaults{
    {"NaN in one element",
     [](Scene&, TileMatrix correct) {
         correct(40, 30) = kNan;
         return correct;
     }},
    {"tile never written (poison)",
     [](Scene&, const TileMatrix& correct) -> TileMatrix {
         return TileMatrix::Constant(correct.rows(), correct.cols(), kNan);
     }},
    {"another tile's output", [](Scene& scene, const TileMatrix&) { return scene.output(1, 0); }},
    {"two tiles swapped",
     [](Scene& scene, const TileMatrix& correct) {
         TileMatrix other = scene.output(1, 0);
         scene.store(1, 0, correct);
         return other;
     }},
    {"another head's output", [](Scene& scene, const TileMatrix&) { return scene.output(0, 1); }},
    {"O transposed (64 x 64 blocks)", [](Scene&, const TileMatrix& correct) { return transpose_blocks(correct); }},
    {"K transposed (64 x 64 blocks)",
     [](Scene& scene, const TileMatrix&) {
         TileOperands operands = scene.operands(0, 0);
         operands.k = transpose_blocks(operands.k);
         return scene.solve(operands);
     }},
    {"stale output (yesterday's inputs)",
     [](Scene& scene, const TileMatrix&) { return scene.solve(yesterday(scene)); }},
    {"last row stale",
     [](Scene& scene, TileMatrix correct) {
         correct.row(63) = scene.solve(yesterday(scene)).row(63);
         return correct;
     }},
    {"last key dropped",
     [](Scene& scene, const TileMatrix&) {
         TileOperands operands = scene.operands(0, 0);
         operands.k.conservativeResize(63, Eigen::NoChange);
         operands.v.conservativeResize(63, Eigen::NoChange);
         return scene.solve(operands);
     }},
    {"one key too many (the next tile's first)",
     [](Scene& scene, const TileMatrix&) {
         TileOperands operands = scene.operands(0, 0);
         operands.k.conservativeResize(65, Eigen::NoChange);
         operands.v.conservativeResize(65, Eigen::NoChange);
         operands.k.row(64) = scene.operands(1, 0).k.row(0);
         operands.v.row(64) = scene.operands(1, 0).v.row(0);
         return scene.solve(operands);
     }},
    {"logits of 300, no maximum subtracted",
     [](Scene& scene, const TileMatrix& correct) {
         const TileOperands large = random_tile(scene.dtype, 64, correct.cols(), 300, 43);
         scene.replace_inputs(0, 0, large);
         EmulatedStage faulty = scene.stage;
         faulty.subtract_max = false;
         faulty.exp2 = libm_exp2;  // exp2_exact is for arguments that are not positive
         return scene.solve(large, faulty);
     }},
};

EmulatedStage with_p_type(EmulatedStage stage, DType p_type) {
    stage.p_type = p_type;
    return stage;
}

/// Faults as small as the rounding of P to bf16, which hides them in a stage that does it.
const std::vector<Fault> kFineFaults{
    {"scale off by 1e-3",
     [](Scene& scene, const TileMatrix&) {
         return emulate(scene.stage, scene.dtype, scene.operands(0, 0), scene.scale() * 1.001F);
     }},
    {"S accumulated in fp16",
     [](Scene& scene, const TileMatrix&) {
         EmulatedStage faulty = scene.stage;
         faulty.qk = Products::fma_fp16;
         return scene.solve(scene.operands(0, 0), faulty);
     }},
    {"O accumulated in fp16",
     [](Scene& scene, const TileMatrix&) {
         EmulatedStage faulty = scene.stage;
         faulty.pv = Products::fma_fp16;
         return scene.solve(scene.operands(0, 0), faulty);
     }},
};

/// Faults as small as a rounding of P to fp16.
const std::vector<Fault> kFinestFaults{
    {"P rounded to fp16",
     [](Scene& scene, const TileMatrix&) {
         return scene.solve(scene.operands(0, 0), with_p_type(scene.stage, DType::fp16));
     }},
    {"P rounded to bf16",
     [](Scene& scene, const TileMatrix&) {
         return scene.solve(scene.operands(0, 0), with_p_type(scene.stage, DType::bf16));
     }},
    {"one element wrong in its last bit (fp32: in bit 11)",
     [](Scene& scene, const TileMatrix& correct) {
         const int fraction_bits = format_of(scene.dtype).significand_bits - 1;
         return with_wrong_bit(scene, correct, scene.dtype == DType::fp32 ? fraction_bits - 11 : fraction_bits);
     }},
};

std::vector<Fault> joined(std::vector<Fault> faults, const std::vector<Fault>& more) {
    faults.insert(faults.end(), more.begin(), more.end());
    return faults;
}

struct Column {
    EmulatedStage stage;
    DType dtype;
    Index dim;
};

/// Makes every fault in every column's scene, checks that it is seen, and prints the shares as a Markdown table.
void check_faults(const std::vector<Column>& columns, const std::vector<Fault>& faults) {
    std::string header = "| fault |";
    std::string rule = "|---|";
    std::string correct = "| none: the correct result |";
    std::vector<std::string> rows(faults.size());
    for (std::size_t i = 0; i < faults.size(); ++i) rows[i] = fmt::format("| {} |", faults[i].name);
    for (const Column& column : columns) {
        header += fmt::format(" {}, dim {} |", name_of(column.dtype), column.dim);
        rule += "---|";
        INFO(name_of(column.dtype), ", dim ", column.dim);
        Scene scene(column.stage, column.dtype, column.dim);
        const Comparison sound = scene.compare();
        CHECK(sound.passed());
        CHECK(sound.largest_share < 0.7);
        correct += fmt::format(" {:.2g} |", sound.largest_share);
        for (std::size_t i = 0; i < faults.size(); ++i) {
            scene.store(0, 0, faults[i].make(scene, scene.output(0, 0)));
            const Comparison comparison = scene.compare();
            scene.restore();
            INFO(faults[i].name);
            CHECK_FALSE(comparison.passed());
            CHECK(comparison.largest_share > 1);
            rows[i] += fmt::format(" {:.2g} |", comparison.largest_share);
        }
    }
    std::string table = header + "\n" + rule + "\n" + correct + "\n";
    for (const std::string& row : rows) table += row + "\n";
    MESSAGE("largest share of the bound:\n\n", table);
}

}  // namespace

TEST_CASE("faults exceed the bound of an fp32 stage") {
    std::vector<Column> columns;
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        for (const Index dim : {64, 128}) columns.push_back({EmulatedStage{}, dtype, dim});
    }
    check_faults(columns, joined(joined(kFaults, kFineFaults), kFinestFaults));
}

TEST_CASE("faults exceed the bound of a tensor-core stage") {
    const auto column = [](DType dtype, Index dim) -> Column {
        return {{.qk = Products::tensor_core, .pv = Products::tensor_core, .p_type = dtype}, dtype, dim};
    };
    check_faults({column(DType::fp16, 64), column(DType::fp16, 128)}, joined(kFaults, kFineFaults));
    check_faults({column(DType::bf16, 64), column(DType::bf16, 128)}, kFaults);
}

TEST_CASE("normal logits without the maximum subtracted pass: exp cannot overflow, and the quotient is the same") {
    const EmulatedStage unsubtracted{.subtract_max = false, .exp2 = libm_exp2};
    for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        INFO(name_of(dtype));
        Scene scene(EmulatedStage{}, dtype, 64);
        scene.store(0, 0, scene.solve(scene.operands(0, 0), unsubtracted));
        CHECK(scene.compare().passed());
    }
}

TEST_CASE("the last bit of an fp32 element is less than what sums in fp32 may lose, so no bound can catch it") {
    Scene scene(EmulatedStage{}, DType::fp32, 64);
    scene.store(0, 0, with_wrong_bit(scene, scene.output(0, 0), format_of(DType::fp32).significand_bits - 1));
    CHECK(scene.compare().passed());
}

TEST_CASE("most single last-bit flips of fp16 and bf16 outputs are caught") {
    // The rest end next to a tie that the stage's own error may cross, or in a number so small that its last place is
    // less than that error.
    for (const DType dtype : {DType::fp16, DType::bf16}) {
        const Scene scene(EmulatedStage{}, dtype, 128);
        const TileBound bound =
            bound_tile(scene.operands(0, 0), static_cast<double>(scene.scale()), arithmetic_of(scene.stage, dtype));
        const TileMatrix computed = scene.output(0, 0);
        Index caught = 0;
        for (Index i = 0; i < computed.size(); ++i) {
            const double element = computed.data()[i];
            const double place = std::ldexp(1.0, std::max(std::ilogb(element), format_of(dtype).min_exponent) -
                                                     (format_of(dtype).significand_bits - 1));
            const bool odd = std::fmod(element / place, 2) != 0;
            const double flipped = element + std::copysign(place, odd ? -element : element);
            if (bound_share(dtype, flipped, bound.expected.data()[i], bound.error.data()[i]) > 1) ++caught;
        }
        const double part = static_cast<double>(caught) / static_cast<double>(computed.size());
        MESSAGE(name_of(dtype), ": ", 100 * part, " % of all single last-bit flips are caught");
        CHECK(part > (dtype == DType::fp16 ? 0.8 : 0.95));
    }
}
