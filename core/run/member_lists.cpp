// SPDX-License-Identifier: Apache-2.0
#include "core/run/member_lists.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace dist {

int32_t list_members(const Naming& naming, std::span<const bool> members, std::span<char> text) noexcept {
  std::size_t used = 0;
  const auto add = [&](const char* format, auto... what) {
    if (used + 1 >= text.size()) return;
    const int length = std::snprintf(text.data() + used, text.size() - used, format, what...);
    used = std::min(text.size() - 1, used + static_cast<std::size_t>(std::max(0, length)));
  };
  text[0] = '\0';
  const auto count = static_cast<int32_t>(std::count(members.begin(), members.end(), true));
  if (count == 0) return 0;
  add("%s%s", naming.word(), count == 1 ? "" : "s");
  const char* separator = " ";
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i]) add("%s%d", std::exchange(separator, ", "), naming.name(static_cast<int>(i)).number());
  }
  if (naming.devices()) add(" of replica %d", number(naming.whole));
  return count;
}

void list_missing(const Naming& naming, std::span<const Missing> members, std::span<char> text) noexcept {
  constexpr struct {
    Missing what;
    const char* word;
  } kKinds[] = {{Missing::kToCome, "come"}, {Missing::kToLeave, "left"}};
  text[0] = '\0';
  for (const auto& kind : kKinds) {
    char list[200] = "";
    int count = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] != kind.what) continue;
      const std::size_t used = std::strlen(list);
      std::snprintf(list + used, sizeof list - used, count++ == 0 ? "%d" : ", %d",
                    naming.name(static_cast<int>(i)).number());
    }
    if (count == 0) continue;
    const std::size_t used = std::strlen(text.data());
    std::snprintf(text.data() + used, text.size() - used, "%s%s %s %s not %s", used == 0 ? "" : "; ",
                  count == 1 ? "replica" : "replicas", list, count == 1 ? "has" : "have", kind.word);
  }
}

void append_to_list(std::span<char> text, const char* item) noexcept {
  const std::size_t used = std::strlen(text.data());
  std::snprintf(text.data() + used, text.size() - used, "%s%s", used == 0 ? "" : "; ", item);
}

}  // namespace dist
