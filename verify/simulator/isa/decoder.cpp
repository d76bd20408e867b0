#include "verify/simulator/isa/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "verify/simulator/machine/special_registers.h"

namespace block_attention::simulator {

namespace {

using Kind = ptx::Operand::Kind;

unsigned bits_of(ptx::RegisterClass register_class) {
    switch (register_class) {
        case ptx::RegisterClass::predicate:
            return 1;
        case ptx::RegisterClass::b8:
            return 8;
        case ptx::RegisterClass::b16:
            return 16;
        case ptx::RegisterClass::b32:
            return 32;
        case ptx::RegisterClass::b64:
            return 64;
        case ptx::RegisterClass::b128:
            return 128;
    }
    return 0;
}

std::string width(unsigned bits) { return bits == 1 ? "a predicate" : fmt::format("a {}-bit register", bits); }

std::string_view words(Kind kind) {
    switch (kind) {
        case Kind::register_:
            return "a register";
        case Kind::integer:
            return "an integer";
        case Kind::floating:
            return "a floating-point number";
        case Kind::special_register:
            return "a special register";
        case Kind::address:
            return "an address in brackets";
        case Kind::variable:
            return "a variable's name";
        case Kind::label:
            return "a label";
        case Kind::function:
            return "a function's name";
        case Kind::vector:
            return "a vector in braces";
        case Kind::list:
            return "a list in parentheses";
        case Kind::pair:
            return "a pair a|b";
        case Kind::tensor_address:
            return "a tensor address";
        case Kind::sink:
            return "'_'";
    }
    return "an operand";
}

}  // namespace

Decoder::Decoder(ProgramBuilder& builder, const ptx::Instruction& instruction)
    : builder_(builder), instruction_(instruction), taken_(instruction.modifiers.size()) {
    if (!instruction.guard) return;
    result.guarded = true;
    result.guard_flip = instruction.guard->negated ? kAllLanes : 0;
    result.guard = builder.register_slot(instruction.guard->predicate);
    if (builder.function().registers[instruction.guard->predicate].register_class != ptx::RegisterClass::predicate) {
        refuse("its guard is not a predicate");
    }
}

bool Decoder::take(std::string_view modifier) {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (taken_[i] || instruction_.modifiers[i] != modifier) continue;
        taken_[i] = true;
        return true;
    }
    return false;
}

void Decoder::ignore(std::initializer_list<std::string_view> modifiers) {
    for (const auto modifier : modifiers) take(modifier);
}

std::optional<Type> Decoder::take_type_if_any() {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (taken_[i]) continue;
        const auto type = parse_type(instruction_.modifiers[i]);
        if (!type) continue;
        taken_[i] = true;
        return type;
    }
    return std::nullopt;
}

Type Decoder::take_type() {
    const auto type = take_type_if_any();
    if (!type) refuse("the type is missing, such as .u32");
    return *type;
}

void Decoder::finish_modifiers() const {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i]) refuse(fmt::format("modifier .{} is not simulated here", instruction_.modifiers[i]));
    }
}

std::string Decoder::mnemonic() const {
    std::string text{instruction_.opcode};
    for (const auto modifier : instruction_.modifiers) text.append(1, '.').append(modifier);
    return text;
}

void Decoder::refuse(std::string_view message) const {
    throw ptx::PtxError(ptx::at(builder_.path(), instruction_.position, fmt::format("{}: {}", mnemonic(), message)));
}

void Decoder::require_target(std::string_view architecture) const {
    const std::string_view target = builder_.module().ptx.target;
    const bool specific = target.ends_with('a') || target.ends_with('f');
    if (specific && target.substr(0, target.size() - 1) == architecture) return;
    refuse(fmt::format("it exists for {}a alone, but the module's target is {}", architecture, target));
}

std::size_t Decoder::number_of(const ptx::Operand& operand) const {
    const auto contains = [&](const ptx::Operand& top) {
        return &top == &operand ||
               std::ranges::any_of(top.elements, [&](const auto& part) { return &part == &operand; });
    };
    return static_cast<std::size_t>(std::ranges::find_if(instruction_.operands, contains) -
                                    instruction_.operands.begin());
}

void Decoder::refuse_operand(const ptx::Operand& operand, std::string_view message) const {
    refuse(fmt::format("operand {}: {}", number_of(operand) + 1, message));
}

Execute Decoder::required(Execute execute, Type type) const {
    if (execute == nullptr) {
        refuse(fmt::format("this instruction is not simulated for this type of {} bits", simulator::bits_of(type)));
    }
    return execute;
}

void Decoder::expect_operands(std::size_t least, std::size_t most) const {
    if (operands() >= least && operands() <= most) return;
    refuse(least == most ? fmt::format("{} operands, but it takes {}", operands(), least)
                         : fmt::format("{} operands, but it takes {} to {}", operands(), least, most));
}

Decoder::WideSlot Decoder::wide_source(const ptx::Operand& operand, Type type) {
    const unsigned bits = simulator::bits_of(type);
    switch (operand.kind) {
        case Kind::register_: {
            if (operand.negated) refuse_operand(operand, "a negated register is not simulated here");
            const unsigned actual = bits_of(builder_.function().registers[operand.index].register_class);
            if (actual < bits || (actual == 1) != (bits == 1)) {
                refuse_operand(operand, fmt::format("{}, but {} is needed", width(actual), width(bits)));
            }
            return {builder_.register_slot(operand.index), actual};
        }
        case Kind::integer:
            if (is_float(type)) refuse_operand(operand, "an integer where a floating-point number is needed");
            return {builder_.constant(static_cast<std::uint64_t>(operand.integer), bits), bits};
        case Kind::floating: {
            const auto raw = static_cast<std::uint64_t>(operand.integer);
            if (bits == 32 && (type == Type::f32 || is_bits(type))) {
                const auto value = operand.float_bits == 32
                                       ? static_cast<std::uint32_t>(raw)
                                       : std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(raw)));
                return {builder_.constant(value, 32), 32};
            }
            if (bits == 64 && (type == Type::f64 || is_bits(type))) {
                const auto value = operand.float_bits == 64
                                       ? raw
                                       : std::bit_cast<std::uint64_t>(static_cast<double>(
                                             std::bit_cast<float>(static_cast<std::uint32_t>(raw))));
                return {builder_.constant(value, 64), 64};
            }
            refuse_operand(operand, "a floating-point number where the type has none");
        }
        case Kind::special_register:
            switch (special_kind(operand.name)) {
                case SpecialKind::fixed:
                    return {builder_.special(operand.name, bits), bits};
                case SpecialKind::clock:
                    refuse_operand(operand, fmt::format("{} can be read by mov alone", operand.name));
                case SpecialKind::unknown:
                    refuse_operand(operand, fmt::format("special register {} is not simulated", operand.name));
            }
            [[fallthrough]];
        default:
            refuse_operand(operand, fmt::format("{} where a value is needed", words(operand.kind)));
    }
}

Slot Decoder::source(const ptx::Operand& operand, Type type) {
    const auto [slot, bits] = wide_source(operand, type);
    const unsigned needed = simulator::bits_of(type);
    if (bits != needed) refuse_operand(operand, fmt::format("{}, but {} is needed", width(bits), width(needed)));
    return slot;
}

Decoder::WideSlot Decoder::wide_destination(const ptx::Operand& operand, Type type) {
    const unsigned bits = simulator::bits_of(type);
    if (operand.kind == Kind::sink) return {builder_.scratch(bits), bits};
    if (operand.kind != Kind::register_ || operand.negated) {
        refuse_operand(operand, fmt::format("{} where a register for the result is needed", words(operand.kind)));
    }
    const unsigned actual = bits_of(builder_.function().registers[operand.index].register_class);
    if (actual < bits || (actual == 1) != (bits == 1)) {
        refuse_operand(operand, fmt::format("{}, but {} is needed", width(actual), width(bits)));
    }
    return {builder_.register_slot(operand.index), actual};
}

Slot Decoder::destination(const ptx::Operand& operand, Type type) {
    const auto [slot, bits] = wide_destination(operand, type);
    const unsigned needed = simulator::bits_of(type);
    if (bits != needed) refuse_operand(operand, fmt::format("{}, but {} is needed", width(bits), width(needed)));
    return slot;
}

Decoder::PredicateSource Decoder::predicate_source(std::size_t i) {
    const ptx::Operand& source = operand(i);
    if (source.kind == Kind::integer) return {builder_.constant(source.integer != 0 ? 1 : 0, 1), 0};
    if (source.kind != Kind::register_) {
        refuse_operand(source, fmt::format("{} where a predicate is needed", words(source.kind)));
    }
    if (builder_.function().registers[source.index].register_class != ptx::RegisterClass::predicate) {
        refuse_operand(source, "a register where a predicate is needed");
    }
    return {builder_.register_slot(source.index), source.negated ? kAllLanes : 0};
}

std::int64_t Decoder::immediate(std::size_t i) const {
    if (operand(i).kind != Kind::integer) {
        refuse_operand(operand(i), fmt::format("{} where an integer is needed", words(operand(i).kind)));
    }
    return operand(i).integer;
}

Slot Decoder::variable_address(const ProgramBuilder::Place& place, std::int64_t bytes, unsigned bits) {
    const std::uint64_t address = place.address + static_cast<std::uint64_t>(bytes);
    return place.space == ptx::Space::shared ? builder_.shared_address(address, bits)
                                             : builder_.constant(address, bits);
}

std::optional<ptx::Space> Decoder::take_space() {
    if (std::ranges::find(instruction_.modifiers, "shared::cluster") != instruction_.modifiers.end()) {
        result.cluster = true;
    }
    return take_one<ptx::Space>({{"global", ptx::Space::global},
                                 {"shared", ptx::Space::shared},
                                 {"shared::cta", ptx::Space::shared},
                                 {"shared::cluster", ptx::Space::shared},
                                 {"local", ptx::Space::local},
                                 {"const", ptx::Space::constant},
                                 {"param", ptx::Space::param},
                                 {"param::entry", ptx::Space::param},
                                 {"param::func", ptx::Space::param}});
}

void Decoder::address(const ptx::Operand& brackets, std::optional<ptx::Space> space, std::size_t at) {
    if (brackets.kind != Kind::address && brackets.kind != Kind::tensor_address) {
        refuse_operand(brackets, fmt::format("{} where an address in brackets is needed", words(brackets.kind)));
    }
    const ptx::Operand& base = brackets.elements.at(0);
    result.generic = !space;
    result.space = space.value_or(ptx::Space::global);
    result.immediate = static_cast<std::uint64_t>(brackets.integer);
    if (base.kind == Kind::register_ && !base.negated) {
        const unsigned bits = bits_of(builder_.function().registers[base.index].register_class);
        const bool narrow_space = space && *space != ptx::Space::global;
        if (bits != 64 && !(bits == 32 && narrow_space)) {
            refuse_operand(brackets, fmt::format("the address is in {}, but {} is needed", width(bits), width(64)));
        }
        result.slots[at] = builder_.register_slot(base.index);
        if (bits == 64) result.flags |= kWideAddress;
        return;
    }
    result.flags |= kWideAddress;
    if (base.kind == Kind::integer) {
        result.slots[at] = builder_.constant(static_cast<std::uint64_t>(base.integer), 64);
        return;
    }
    if (base.kind != Kind::variable) {
        refuse_operand(brackets, fmt::format("{} where an address is needed", words(base.kind)));
    }
    const auto place = builder_.place_of(base);
    const bool call_parameter = space == ptx::Space::param && place.space == ptx::Space::local;
    const bool identity = !space && (place.space == ptx::Space::global || place.space == ptx::Space::constant);
    if (space != place.space && !call_parameter && !identity) {
        refuse_operand(brackets, fmt::format("variable '{}' is not in the state space of the access", place.name));
    }
    if (!identity) result.space = place.space;
    result.slots[at] = variable_address(place, base.integer, 64);
}

}  // namespace block_attention::simulator
