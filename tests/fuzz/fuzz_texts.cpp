// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: tags and names of arbitrary bytes. Two replicas call a few collectives with them, some of
// which fail. All output of libdist must be well-formed: traces are JSON, metrics use the Prometheus text
// format, and everything is UTF-8.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#include <dist/dist.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <string>

#include "tests/fuzz/bytes.h"

namespace {

constexpr std::size_t kReplicas = 2;
constexpr std::size_t kSteps = 4;

struct Step {
  uint8_t kind;
  std::array<std::string, kReplicas> tags;
};

struct Program {
  std::size_t n = 0;
  std::array<Step, kSteps> steps;
  std::array<std::string, kReplicas> errors;  // texts of the last failure
};

// Takes the bytes up to a zero byte or the end of the input.
std::string take_text(bytes* in) {
  std::string text;
  while (const char byte = static_cast<char>(take(in))) text += byte;
  return text;
}

dist_status play(dist_replica* replica, void* user_data) {
  auto& program = *static_cast<Program*>(user_data);
  const auto id = static_cast<std::size_t>(dist_replica_id(replica));
  dist_status status = DIST_OK;
  for (std::size_t k = 0; status == DIST_OK && k < program.n; ++k) {
    const Step& step = program.steps[k];
    dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
    options.tag = step.tags[id].c_str();
    float number = 1;
    dist_tensor tensor = {&number, DIST_F32, 0, nullptr, nullptr};
    switch (step.kind % 4) {
      case 0: status = dist_barrier(replica, &options, nullptr); break;
      case 1:
        status = dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, &options, nullptr);
        break;
      case 2: {
        dist_work* work = nullptr;
        status = dist_broadcast(replica, 0, &tensor, &tensor, 1, &options, &work);
        if (status == DIST_OK) status = dist_work_wait(work, DIST_NO_TIMEOUT);
        dist_work_destroy(work);
        break;
      }
      default:
        status = id == 1 ? dist_fail(DIST_NOT_FOUND, options.tag) : dist_barrier(replica, &options, nullptr);
    }
  }
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (status == DIST_OK || dist_last_error_info(&info) != DIST_OK) return status;
  for (const char* text : {info.message, info.tag, info.expected, info.received, info.hint})
    program.errors[id].append(text) += '\n';
  return status;
}

// ---- Checks of the output ----

// The length of the UTF-8 character at `at`, or 0.
std::size_t character(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  uint32_t code = length < 2 ? lead : lead & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0u) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool longer = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  return longer || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : length;
}

bool is_utf8(const std::string& text) {
  std::size_t at = 0;
  for (std::size_t length = 1; at < text.size() && length > 0; at += length) length = character(text, at);
  return at == text.size();
}

void check_utf8(const std::string& text, const char* what) {
  if (!is_utf8(text)) fail_msg("%s is no UTF-8: %s", what, text.c_str());
}

void check_trace(const std::string& text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    fail_msg("the trace is no JSON at byte %zu: %s: %.200s", document.GetErrorOffset(),
             rapidjson::GetParseError_En(document.GetParseError()),
             text.substr(document.GetErrorOffset() > 100 ? document.GetErrorOffset() - 100 : 0, 200).c_str());
  }
}

bool name_at(const std::string& line, std::size_t* at) {
  const std::size_t begin = *at;
  while (*at < line.size() && (std::isalnum(static_cast<unsigned char>(line[*at])) != 0 || line[*at] == '_'))
    ++*at;
  return *at > begin && std::isdigit(static_cast<unsigned char>(line[begin])) == 0;
}

// Returns whether a line has the form NAME{NAME="TEXT",...} NUMBER, where only ", \ and n may follow a
// backslash in TEXT.
bool is_sample(const std::string& line) {
  std::size_t at = 0;
  if (!name_at(line, &at)) return false;
  if (line[at] == '{') {
    do {
      ++at;
      if (!name_at(line, &at) || line.compare(at, 2, "=\"") != 0) return false;
      for (at += 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' &&
            (++at == line.size() || std::string("\"\\n").find(line[at]) == std::string::npos))
          return false;
      }
      if (at >= line.size()) return false;
      ++at;
    } while (at < line.size() && line[at] == ',');
    if (at >= line.size() || line[at++] != '}') return false;
  }
  if (at >= line.size() || line[at++] != ' ') return false;
  char* end = nullptr;
  (void)std::strtod(line.c_str() + at, &end);
  return end != line.c_str() + at && *end == '\0';
}

void check_metrics(const std::string& text) {
  if (text.empty() || text.back() != '\n') fail_msg("the metrics do not end with a line's end");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const bool comment = line.rfind("# HELP ", 0) == 0 || line.rfind("# TYPE ", 0) == 0;
    if (!comment && !is_sample(line)) fail_msg("no line of metrics: %s", line.c_str());
    at = end + 1;
  }
}

void append(const char* text, std::size_t size, void* user_data) {
  static_cast<std::string*>(user_data)->append(text, size);
}

void expect_ok(dist_status status) {
  if (status != DIST_OK) fail_msg("%s", dist_last_error());
}

void look_inside(dist_strategy* strategy, const std::string& name) {
  std::string trace, metrics, words;
  expect_ok(dist_strategy_write_trace(strategy, append, &trace));
  expect_ok(dist_strategy_write_metrics(strategy, name.c_str(), append, &metrics));
  expect_ok(dist_strategy_explain(strategy, append, &words));
  check_utf8(trace, "the trace");
  check_trace(trace);
  check_utf8(metrics, "the metrics");
  check_metrics(metrics);
  check_utf8(words, "the explanation");
  dist_straggler rows[64];
  std::size_t n = 0;
  expect_ok(dist_strategy_stragglers(strategy, rows, sizeof rows[0], 64, &n));
  for (std::size_t i = 0; i < n && i < 64; ++i) {
    if (strnlen(rows[i].tag, sizeof rows[i].tag) == sizeof rows[i].tag)
      fail_msg("a straggler's tag has no end");
    check_utf8(rows[i].tag, "a straggler's tag");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bytes in = {data, size};
  const uint8_t flags = take(&in);
  static Program program;
  program = {};
  const std::string name = take_text(&in);
  for (; program.n < kSteps && in.left > 0; ++program.n) {
    Step& step = program.steps[program.n];
    step.kind = take(&in);
    step.tags[0] = take_text(&in);
    step.tags[1] = (step.kind & 64) != 0 ? take_text(&in) : step.tags[0];
  }
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = static_cast<int32_t>(kReplicas);
  options.threads = flags % 2 == 0 ? DIST_THREADS_CALLER : DIST_THREADS_LIBRARY;
  dist_strategy* strategy = nullptr;
  expect_ok(dist_strategy_create(&options, &strategy));
  const dist_status status = dist_run(strategy, play, &program, nullptr);
  if (status != DIST_OK) check_utf8(dist_last_error(), "the run's report");
  for (const std::string& text : program.errors) check_utf8(text, "a replica's report");
  look_inside(strategy, name);
  expect_ok(dist_strategy_destroy(strategy));
  return 0;
}
