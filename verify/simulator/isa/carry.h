#pragma once
#include "verify/simulator/isa/decoder.h"

/// Arithmetic on numbers of several registers (PTX ISA 9.7.2): the carry of one addition goes into the next.
namespace block_attention::simulator {

/// What an instruction does with the carry flag CC.CF.
struct CarryUse {
    bool in = false;
    bool out = false;
};

/// add and sub, whose modifier .cc has been taken; addc and subc.
void decode_carry_sum(Decoder& decoder, bool subtract, CarryUse carry);

/// mad, whose modifier .cc has been taken; madc.
void decode_carry_product(Decoder& decoder, CarryUse carry);

}  // namespace block_attention::simulator
