#include "verify/simulator/ptx/module.h"

#include <algorithm>

namespace block_attention::simulator::ptx {

const Function* Module::find_kernel(std::string_view name) const {
    const auto found = std::find_if(functions.begin(), functions.end(), [name](const Function& function) {
        return function.entry && function.has_body && function.name == name;
    });
    return found == functions.end() ? nullptr : &*found;
}

std::string instruction_text(const Module& module, const Instruction& instruction) {
    const std::string_view text = *module.text;
    auto offset = static_cast<std::size_t>(instruction.opcode.data() - text.data());
    if (instruction.guard) offset = text.rfind('@', offset);

    std::string collapsed;
    bool blank = false;
    while (offset < text.size() && text[offset] != ';') {
        const std::string_view rest = text.substr(offset, 2);
        if (rest == "//" || rest == "/*") {
            const std::string_view close = rest == "//" ? "\n" : "*/";
            offset = std::min(text.find(close, offset + 2), text.size() - close.size()) + close.size();
            blank = true;
            continue;
        }
        const char c = text[offset++];
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            blank = true;
            continue;
        }
        if (blank) collapsed += ' ';
        blank = false;
        collapsed += c;
    }
    return collapsed;
}

}  // namespace block_attention::simulator::ptx
