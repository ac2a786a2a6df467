// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "replay.hpp"

namespace golden {
namespace {

struct Row {
  std::string_view exception;
  std::initializer_list<dist_status>
      statuses;  // empty = an accidental error of Python, for which any error except INTERNAL counts as equal
};
const Row kTable[] = {
    // Errors that Python code raises deliberately.
    {"ValueError", {DIST_INVALID_ARGUMENT}},
    {"AssertionError", {DIST_INVALID_ARGUMENT}},
    {"RuntimeError", {DIST_FAILED_PRECONDITION}},
    {"NotImplementedError", {DIST_UNIMPLEMENTED}},
    {"StopIteration", {DIST_OUT_OF_RANGE}},
    {"JSONDecodeError", {DIST_INVALID_ARGUMENT}},
    {"DecodeError", {DIST_INVALID_ARGUMENT}},
    // TensorFlow's own error codes.
    {"CancelledError", {DIST_CANCELLED}},
    {"InvalidArgumentError", {DIST_INVALID_ARGUMENT}},
    {"DeadlineExceededError", {DIST_DEADLINE_EXCEEDED}},
    {"NotFoundError", {DIST_NOT_FOUND}},
    {"AlreadyExistsError", {DIST_ALREADY_EXISTS}},
    {"PermissionDeniedError", {DIST_PERMISSION_DENIED}},
    {"ResourceExhaustedError", {DIST_RESOURCE_EXHAUSTED}},
    {"FailedPreconditionError", {DIST_FAILED_PRECONDITION}},
    {"AbortedError", {DIST_ABORTED}},
    {"OutOfRangeError", {DIST_OUT_OF_RANGE}},
    {"UnimplementedError", {DIST_UNIMPLEMENTED}},
    {"UnavailableError", {DIST_UNAVAILABLE}},
    {"DataLossError", {DIST_DATA_LOSS}},
    // Accidental errors in Python code or in TensorFlow's C++ code.
    {"AttributeError", {}},
    {"IndexError", {}},
    {"InternalError", {}},
    {"KeyError", {}},
    {"NameError", {}},
    {"OverflowError", {}},
    {"RecursionError", {}},
    {"TypeError", {}},
    {"UnboundLocalError", {}},
    {"UnknownError", {}},
    {"ZeroDivisionError", {}},
};

}  // namespace

bool same_kind(std::string_view exception, dist_status status) {
  for (const Row& row : kTable) {
    if (row.exception != exception) continue;
    if (row.statuses.size() == 0) return status != DIST_OK && status != DIST_INTERNAL;
    return std::find(row.statuses.begin(), row.statuses.end(), status) != row.statuses.end();
  }
  throw Unknown{"an exception called \"" + std::string(exception) + "\""};
}

bool is_error(const Json& json, dist_status* out_status) {
  if (!json.IsObject()) return false;
  const Json* const kind = find(json, "kind");
  const Json* const status = find(json, "status");
  if (kind == nullptr || status == nullptr || !kind->IsString() || text_of(*kind) != "error") return false;
  *out_status = status->GetInt();
  return true;
}

std::string_view exception_of(const Json& json) {
  if (json.IsString()) return text_of(json);
  if (!json.IsObject()) return "";
  if (const Json* const type = find(json, "type"); type != nullptr && type->IsString()) return text_of(*type);
  const Json* const error = find(json, "error");
  return error != nullptr && error->IsObject() ? exception_of(*error) : "";
}

}  // namespace golden
