// SPDX-License-Identifier: Apache-2.0
#include "core/base/device_name.hpp"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "core/base/text.hpp"

namespace dist {
namespace {

constexpr const char* kTypes[] = {"CPU", "GPU", "TPU"};

constexpr char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Returns CPU, GPU or TPU, ignoring case, or NULL.
const char* type_of(std::string_view text) noexcept {
  for (const char* type : kTypes) {
    const std::string_view known(type);
    bool equal = known.size() == text.size();
    for (std::size_t i = 0; equal && i < known.size(); ++i) equal = upper(text[i]) == known[i];
    if (equal) return type;
  }
  return nullptr;
}

// Parses an index: "3" is 3; "*" means any device and gives 0.
bool read_index(std::string_view digits, int32_t* out) noexcept {
  if (digits == "*") {
    *out = 0;
    return true;
  }
  int32_t index = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, index);
  if (error != std::errc{} || stop != end || index < 0) return false;
  *out = index;
  return true;
}

// Splits `rest` at the first `mark`, which is dropped, and returns the part before it.
std::string_view cut(std::string_view& rest, char mark) noexcept {
  const std::size_t at = rest.find(mark);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

struct Device {
  const char* type = nullptr;
  int32_t index = 0;
};

enum class Part { kUnderstood, kUnknown, kElsewhere };

// Parses one component of a name, between two slashes: "job:localhost", "device:CPU:1", "cpu:1".
Part read_part(std::string_view part, Device* device) noexcept {
  std::string_view rest = part;
  const std::string_view key = cut(rest, ':');
  if (key == "job") return rest == "localhost" || rest.empty() ? Part::kUnderstood : Part::kElsewhere;
  if (key == "replica" || key == "task") {
    int32_t index = 0;
    if (!read_index(rest, &index)) return Part::kUnknown;
    return index == 0 ? Part::kUnderstood : Part::kElsewhere;
  }
  const std::string_view type = key == "device" ? cut(rest, ':') : key;
  if (device->type != nullptr) return Part::kUnknown;
  device->type = type_of(type);
  if (device->type == nullptr) return Part::kUnknown;
  const bool plain = key != "device" && part.size() == key.size();  // "CPU"
  return plain || read_index(rest, &device->index) ? Part::kUnderstood : Part::kUnknown;
}

}  // namespace

DeviceName::DeviceName(const char* type, int32_t index) noexcept {
  std::snprintf(text_, sizeof text_, "/job:localhost/replica:0/task:0/device:%s:%d", type, index);
}

Status DeviceName::parse(const char* text, const char* what, DeviceName* out) noexcept {
  if (text == nullptr) return invalid_argument("`%s` is `NULL`. Pass a device name such as \"CPU:0\".", what);
  Device device;
  for (std::string_view rest(text); !rest.empty();) {
    const std::string_view part = cut(rest, '/');
    if (part.empty()) continue;
    switch (read_part(part, &device)) {
      case Part::kUnderstood: break;
      case Part::kElsewhere:
        return invalid_argument(
            "`%s` is \"%s\", a device of another process. A strategy can only use devices of its own "
            "process.",
            what, Shown(text).c_str());
      case Part::kUnknown:
        return invalid_argument(
            "`%s` is \"%s\": \"%s\" is not a valid part of a device name. Use a name such as \"CPU:1\" or "
            "\"/job:localhost/replica:0/task:0/device:CPU:1\".",
            what, Shown(text).c_str(), Shown(part).c_str());
    }
  }
  *out = DeviceName(device.type != nullptr ? device.type : kTypes[0], device.index);
  return kOk;
}

DeviceName DeviceName::of_task(const char* job, int32_t task) const noexcept {
  DeviceName named;
  std::snprintf(named.text_, sizeof named.text_, "/job:%.*s/replica:0/task:%d%s", static_cast<int>(kMostJob),
                job, task, std::strstr(text_, "/device:"));
  return named;
}

bool DeviceName::operator==(const DeviceName& other) const noexcept {
  return std::strcmp(text_, other.text_) == 0;
}

}  // namespace dist
