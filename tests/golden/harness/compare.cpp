// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <cmath>
#include <optional>

#include "elements.hpp"
#include "errors.hpp"

namespace golden {
namespace {

constexpr std::size_t kShown = 300;  // bytes of a value in a message

std::string_view kind_of(const Json& json) {
  if (!json.IsObject()) return "";
  const Json* const kind = find(json, "kind");
  return kind != nullptr && kind->IsString() ? text_of(*kind) : "";
}

// Keys that are not part of the value. A variable's class is compared if libdist has one; a single copy shown
// as a variable has none. The duration of a worker's call depends on the run, and its inputs are not an
// answer.
bool is_aside(std::string_view kind, std::string_view key, const Json& came) {
  if (kind.empty()) return (key == "seconds" || key == "inputs") && find(came, key) == nullptr;
  if (kind == "variable") return key == "class" && find(came, key) == nullptr;
  if (kind == "object") return key == "class";
  return kind == "tuple" && key == "fields";
}

class Comparison {
 public:
  // Returns the first difference, if any.
  std::optional<Difference> run(const std::string& part, const Json& expected, const Json& came) {
    where_ = part;
    if (same(expected, came)) return std::nullopt;
    difference_.part = part;
    return difference_;
  }

 private:
  bool same(const Json& expected, const Json& came) {
    if (dist_status status; is_error(came, &status)) return same_error(expected, came, status);
    const std::string_view kind = kind_of(expected);
    if (kind.starts_with("py_")) return said(same_python(kind, expected, came), expected, came);
    if (kind == "tensor") return said(same_tensor(expected, came), expected, came);
    if (kind != kind_of(came)) return said(false, expected, came);
    if (expected.IsObject()) return same_members(kind, expected, came);
    if (expected.IsArray()) return same_items(expected, came);
    return said(same_plain(expected, came), expected, came);
  }

  bool same_error(const Json& expected, const Json& came, dist_status status) {
    const std::string_view exception = exception_of(expected);
    return said(!exception.empty() && same_kind(exception, status), expected, came);
  }

  static bool same_python(std::string_view kind, const Json& expected, const Json& came) {
    const Json& value = member(expected, "value");
    if (kind == "py_string") return kind == kind_of(came) && value == member(came, "value");
    if (kind_of(came) != "tensor") return false;
    const Elements scalar = elements_of(came);
    if (!scalar.shape.empty()) return false;
    if (kind == "py_bool")
      return scalar.dtype == DIST_BOOL && numbers_of(scalar)[0] == (value.GetBool() ? 1 : 0);
    if (kind == "py_int") {
      return scalar.dtype >= DIST_I8 && scalar.dtype <= DIST_U64 &&
             text_of(member(came, "data")[0]) == to_text(value);
    }
    if (kind != "py_float") throw Malformed{"a value of kind \"" + std::string(kind) + "\""};
    return (scalar.dtype == DIST_F32 || scalar.dtype == DIST_F64) &&
           equal(elements_of(scalar.dtype, {}, {number_of(value)}), scalar);
  }

  static bool same_tensor(const Json& expected, const Json& came) {
    if (text_of(member(expected, "dtype")) != "string") {
      return kind_of(came) == "tensor" && equal(elements_of(expected), elements_of(came));
    }
    const Json& texts = member(expected, "data");
    const bool list = !member(expected, "shape").Empty();
    if (kind_of(came) != (list ? "list" : "py_string")) return false;
    if (!list) return texts.Size() == 1 && texts[0] == member(came, "value");
    const Json& items = member(came, "items");
    bool same = items.Size() == texts.Size();
    for (rapidjson::SizeType i = 0; same && i < texts.Size(); ++i) {
      same = kind_of(items[i]) == "py_string" && texts[i] == member(items[i], "value");
    }
    return same;
  }

  bool same_members(std::string_view kind, const Json& expected, const Json& came) {
    if (!came.IsObject()) return said(false, expected, came);
    for (const auto& [name, value] : expected.GetObject()) {
      const std::string_view key = text_of(name);
      if (is_aside(kind, key, came)) continue;
      const Json* const other = find(came, key);
      if (other == nullptr) return said(false, expected, came);
      const std::string above = where_;
      where_.append(".").append(key);
      if (!same(value, *other)) return false;
      where_ = above;
    }
    for (const auto& [name, value] : came.GetObject()) {
      if (find(expected, text_of(name)) == nullptr && !is_aside(kind, text_of(name), came)) {
        return said(false, expected, came);
      }
    }
    return true;
  }

  bool same_items(const Json& expected, const Json& came) {
    if (!came.IsArray() || came.Size() != expected.Size()) return said(false, expected, came);
    for (rapidjson::SizeType i = 0; i < expected.Size(); ++i) {
      const std::string above = where_;
      where_.append("[").append(std::to_string(i)).append("]");
      if (!same(expected[i], came[i])) return false;
      where_ = above;
    }
    return true;
  }

  static bool same_plain(const Json& expected, const Json& came) {
    if (expected.IsNumber() && came.IsNumber()) {
      const bool exact = !expected.IsDouble() && !came.IsDouble();
      return exact ? expected == came : expected.GetDouble() == came.GetDouble();
    }
    return expected == came;
  }

  // Records the place of a difference while the comparison returns.
  bool said(bool same, const Json& expected, const Json& came) {
    if (!same) difference_ = {"", where_, to_text(expected, kShown), to_text(came, kShown)};
    return same;
  }

  std::string where_;
  Difference difference_;
};

// Compares the answers of several workers. Their parts count as parts of the case.
std::vector<Difference> compare_workers(const Json& expected, const Json& came) {
  const bool both = came.IsArray() && came.Size() == expected.Size();
  if (!both) return {{"per_worker", "per_worker", to_text(expected, kShown), to_text(came, kShown)}};
  std::vector<Difference> differences;
  for (rapidjson::SizeType w = 0; w < expected.Size(); ++w) {
    const Json* const own = find(expected[w], "expected");
    const Json* const answer = find(came[w], "expected");
    for (Difference& one : compare(own ? *own : expected[w], own && answer ? *answer : came[w])) {
      one.where = "worker " + std::to_string(w) + ": " + one.where;
      differences.push_back(std::move(one));
    }
  }
  return differences;
}

}  // namespace

std::vector<Difference> compare(const Json& expected, const Json& came) {
  if (expected.IsObject() && came.IsObject() && expected.MemberCount() == 1) {
    const Json* const workers = find(expected, "per_worker");
    const Json* const answers = find(came, "per_worker");
    if (workers != nullptr && answers != nullptr && workers->IsArray())
      return compare_workers(*workers, *answers);
  }
  std::vector<Difference> differences;
  if (!expected.IsObject() || !kind_of(expected).empty() || !came.IsObject()) {
    if (const auto difference = Comparison().run("expected", expected, came))
      differences.push_back(*difference);
    return differences;
  }
  for (const auto& [name, value] : expected.GetObject()) {
    const std::string part(text_of(name));
    const Json* const other = find(came, part);
    if (other == nullptr && part == "exited_after_seconds") continue;  // depends on the run
    if (other == nullptr) {
      differences.push_back({part, part, to_text(value, kShown), "nothing"});
    } else if (const auto difference = Comparison().run(part, value, *other)) {
      differences.push_back(*difference);
    }
  }
  for (const auto& [name, value] : came.GetObject()) {
    const std::string part(text_of(name));
    if (find(expected, part) == nullptr)
      differences.push_back({part, part, "nothing", to_text(value, kShown)});
  }
  return differences;
}

}  // namespace golden
