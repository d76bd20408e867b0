#include "verify/report/junit.h"

#include <fmt/core.h>

#include <algorithm>

#include "verify/report/table.h"

namespace block_attention {
namespace {

double total(const Seconds& seconds) { return seconds.set_up + seconds.run + seconds.compare; }

/// The first line of a result's details, without the rest.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What a reader may want to know of a result that passed as well.
std::string properties(const Result& result) {
    if (!result.schedules) return "";
    return fmt::format("<properties><property name=\"schedules\" value=\"{}\"/></properties>",
                       result.schedules->schedules.count);
}

std::string body(const Result& result) {
    if (result.refusal) return fmt::format("<skipped message=\"{}\"/>", escape_xml(*result.refusal));
    if (!failed(result)) return "";
    const std::string text = details({}, result);
    const std::string_view kind = result.error ? "error" : "failure";
    return fmt::format("<{} message=\"{}\">{}</{}>", kind, escape_xml(first_line(text)), escape_xml(text), kind);
}

}  // namespace

std::string escape_xml(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        const bool control = code < 0x20 && c != '\n' && c != '\t';
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            default:
                escaped += control ? '?' : c;
        }
    }
    return escaped;
}

void write_junit(std::ostream& stream, std::span<const Result> results) {
    const auto count = [&](auto test) { return std::count_if(results.begin(), results.end(), test); };
    double seconds = 0;
    for (const Result& result : results) seconds += total(result.seconds);
    const auto errors = count([](const Result& result) { return result.error.has_value(); });
    stream << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
    stream << fmt::format(
        "<testsuite name=\"verify\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
        results.size(), count(failed) - errors, errors, count([](const Result& result) { return !result.ran(); }),
        seconds);
    for (const Result& result : results) {
        stream << fmt::format("<testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">{}{}</testcase>\n",
                              escape_xml(fmt::format("{}.{}", result.stage, result.device)),
                              escape_xml(result.case_name), total(result.seconds), properties(result), body(result));
    }
    stream << "</testsuite>\n</testsuites>\n";
}

}  // namespace block_attention
