#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "verify/command_line.h"
#include "verify/stages.h"

int main(int argc, char** argv) {
    try {
        // https://no-color.org: a variable that is set and not empty switches colour off.
        const char* no_colour = std::getenv("NO_COLOR");
        const bool colour_allowed = no_colour == nullptr || *no_colour == '\0';
        return block_attention::run_command_line(argc, argv,
                                                 {.out = std::cout,
                                                  .err = std::cerr,
                                                  .out_is_coloured = isatty(STDOUT_FILENO) == 1 && colour_allowed,
                                                  .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                                  .stages = block_attention::all_stages(),
                                                  .open_devices = block_attention::open_devices});
    } catch (const std::exception& error) {
        std::cerr << "verify: " << error.what() << "\n";
    } catch (...) {
        std::cerr << "verify: an unknown error\n";
    }
    return block_attention::kFailed;
}
