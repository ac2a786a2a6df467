// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/statuses.hpp"

#include <algorithm>
#include <string_view>

#include "core/net/grpc/connect_token.hpp"

namespace dist::grpc_link {
namespace {

constexpr std::string_view kRefused = "connection refused at ";

// Removes a prefix that ends with `end`, if the text has it and all of `allowed` holds for the prefix.
template <class Allowed>
std::string_view take_prefix(std::string_view* text, std::string_view end, Allowed&& allowed) {
  const std::size_t at = text->find(end);
  if (at == text->npos || !allowed(text->substr(0, at))) return {};
  const std::string_view prefix = text->substr(0, at);
  text->remove_prefix(at + end.size());
  return prefix;
}

// "10.0.0.7:2222" of "ipv4:10.0.0.7:2222: " and "[::1]:2222" of "ipv6:%5B::1%5D:2222: ".
std::string take_address(std::string_view* text) {
  const auto begins = [](std::string_view each) {
    return each.starts_with("ipv4:") || each.starts_with("ipv6:");
  };
  std::string_view address = take_prefix(text, ": ", begins);
  if (address.empty()) return "";
  address.remove_prefix(5);
  std::string plain;
  for (std::size_t i = 0; i < address.size(); ++i) {
    const std::string_view code = address.substr(i, 3);
    if (code == "%5B" || code == "%5b" || code == "%5D" || code == "%5d" || code == "%25") {
      plain += code[1] == '2' ? '%' : code[2] == 'B' || code[2] == 'b' ? '[' : ']';
      i += 2;
    } else {
      plain += address[i];
    }
  }
  return plain;
}

bool is_code(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char each) { return (each >= 'A' && each <= 'Z') || each == '_'; });
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Returns "certificate verify failed" for "Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL
// routines::certificate verify failed".
std::string_view reason_of_openssl(std::string_view text) {
  constexpr std::string_view kBefore = "::";
  const std::size_t at = text.rfind(kBefore);
  return at == text.npos ? "unknown reason" : text.substr(at + kBefore.size());
}

std::string explain(std::string_view text, const std::string& address) {
  const std::string tls = "the TLS handshake with " + address + " failed: ";
  if (has(text, "onnection refused")) return std::string(kRefused) + address;
  if (has(text, "wrong version number")) return tls + "it did not answer with TLS";
  if (has(text, "certificate verify failed")) return tls + "its certificate is not valid here";
  if (has(text, "Ssl handshake failed")) return tls + std::string(reason_of_openssl(text));
  if (has(text, "is not in peer certificate")) return tls + "its certificate is for other names";
  // These come from the parsers of the response to the token and of HTTP/2, and from the check that TLS has
  // negotiated HTTP/2.
  if (text.starts_with("Expected ") || has(text, "Failed parsing HTTP") || has(text, "Cannot check peer"))
    return why_refused("");
  for (const char* const ended :
       {"Socket closed", "Connection reset", "Broken pipe", "Handshake read failed", "Handshake write failed",
        "Stream removed", "EOF", "Endpoint read failed", "Endpoint closing", "Transport closed", "GOAWAY"}) {
    if (has(text, ended)) return address + " closed the connection during the handshake";
  }
  constexpr std::string_view kConnects = "Failed to connect to remote host: ";
  const bool connects = text.starts_with(kConnects);
  for (const char* const late :
       {"FD Shutdown", "FD shutdown", "imeout", "imed out", "Deadline Exceeded", "Handshaker shutdown"}) {
    if (has(text, late))
      return address + (connects ? " did not accept the connection in time"
                                 : " did not complete the handshake in time");
  }
  if (connects) text.remove_prefix(kConnects.size());
  return "the connection to " + address + " failed: " + std::string(text);
}

}  // namespace

std::string explain_status(std::string status) {
  constexpr std::string_view kProxy = "HTTP proxy returned response code ";
  constexpr std::string_view kAll = "failed to connect to all addresses";
  constexpr std::string_view kLast = "last error: ";
  if (has(status, kProxy)) return explain_response(status);
  std::string_view rest = status;
  if (const std::size_t at = rest.find(kLast); at != rest.npos) rest.remove_prefix(at + kLast.size());
  (void)take_prefix(&rest, ": ", is_code);
  const std::string address = take_address(&rest);
  if (!address.empty()) return explain(rest, address);
  if (has(status, kAll)) return "no connection could be made";
  // Without an address, only gRPC's own texts are recognized, because refusals contain texts of libdist.
  if (rest == "Socket closed" || rest == "Stream removed" || has(rest, "onnection reset"))
    return "the peer closed the connection during the handshake";
  if (rest == "FD Shutdown" || rest == "Deadline Exceeded")
    return "the peer did not complete the handshake in time";
  return status;
}

bool nobody_listens(const std::string& explained) noexcept {
  return explained.find(kRefused) != std::string::npos;
}

}  // namespace dist::grpc_link
