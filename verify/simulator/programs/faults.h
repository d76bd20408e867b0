#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simulator/programs/programs.h"

/// Faults to put into the programs, one at a time. None may go unnoticed but the lack of some fences: each makes the
/// result wrong, or is found, or lets the kernel die.
namespace block_attention::programs {

/// A change to the text of a kernel's PTX.
struct PtxEdit {
    static constexpr int kEverywhere = -1;

    std::string_view instruction;  ///< what the line holds: "mbarrier.try_wait."
    int occurrence = 0;            ///< which such line of the kernel, from 0
    std::string_view part;         ///< what of it to replace; empty: the whole instruction
    std::string_view replacement;
};

/// What is done wrong: a setting, or the text, or both.
struct Fault {
    std::string name;
    std::function<void(Settings&)> change;  ///< empty if no setting is
    std::vector<PtxEdit> edits;
};

/// Whether it only removes fences that the simulator does not ask for, fence.proxy and wgmma.fence: its memory is in
/// order without them, so that only a checker of the order could notice.
bool goes_unnoticed(const Fault& fault);

/// The text with the edits made in the kernel of that name. A removed try_wait answers "done". Throws
/// std::invalid_argument if there is nothing to edit.
std::string edited_ptx(std::string_view ptx, std::string_view kernel, const std::vector<PtxEdit>& edits);

/// Everything that can be done wrong in a program: each wait removed, each parity flipped, each field of swizzle,
/// descriptor and instruction descriptor that matters, the transaction bytes off by a box, each fence removed that
/// orders two proxies or two threads.
std::vector<Fault> faults_of(const Program& program);

}  // namespace block_attention::programs
