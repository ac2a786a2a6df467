// SPDX-License-Identifier: Apache-2.0
// Reasons: why the attempts to reach a peer have failed so far. Attempts continue until a deadline passes, so
// the report lists every reason that was found.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dist::grpc_link {

class Reasons {
 public:
  void add(std::string reason) {
    // gRPC: "failed to connect to all addresses; last error: ..."
    constexpr std::string_view kLast = "last error: ";
    if (const std::size_t at = reason.find(kLast); at != std::string::npos)
      reason.erase(0, at + kLast.size());
    show_addresses(reason);
    // The same reason may contain another time of day.
    const auto key = [](const std::string& each) {
      return std::string_view(each).substr(0, each.find(", but this machine's clock shows "));
    };
    std::erase_if(list_, [&](const std::string& each) { return key(each) == key(reason); });
    list_.insert(list_.begin(), std::move(reason));
    list_.resize(std::min(list_.size(), kMost));
  }
  void clear() noexcept { list_.clear(); }
  bool empty() const noexcept { return list_.empty(); }
  // "the latest; before that: another; another"
  std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      text += (i == 0 ? "" : i == 1 ? "; before that: " : "; ") + list_[i];
    }
    return text;
  }

 private:
  // gRPC writes addresses as URIs: "ipv6:%5B::1%5D:5000" becomes "[::1]:5000".
  static void show_addresses(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> kForms[] = {
        {"ipv4:", ""}, {"ipv6:", ""}, {"%5B", "["}, {"%5D", "]"}, {"%25", "%"}};
    for (const auto& [from, to] : kForms) {
      for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    }
  }

  static constexpr std::size_t kMost = 6;
  std::vector<std::string> list_;  // each reason once, the latest first
};

}  // namespace dist::grpc_link
