// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/connect_token.hpp"

#include <nettle/hmac.h>

#include <array>
#include <charconv>

#include "core/net/grpc/hello.hpp"

namespace dist::grpc_link {
namespace {

constexpr char kHeader[] = "\r\nDist-Token:";
constexpr char kVersion[] = "1 ";
constexpr std::size_t kNonceBytes = 16;
constexpr std::size_t kNonceDigits = 2 * kNonceBytes;

const uint8_t* raw(const char* text) { return reinterpret_cast<const uint8_t*>(text); }

std::string hex(const std::byte* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<unsigned>(bytes[i]);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

// The digest of everything in the token that precedes it, as hexadecimal digits.
std::array<char, 64> digest_of(std::string_view secret, std::string_view before) noexcept {
  constexpr std::string_view kPurpose = "libdist connection token ";
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, secret.size(), raw(secret.data()));
  hmac_sha256_update(&context, kPurpose.size(), raw(kPurpose.data()));
  hmac_sha256_update(&context, before.size(), raw(before.data()));
  uint8_t bytes[32];
  hmac_sha256_digest(&context, sizeof bytes, bytes);
  std::array<char, 64> digits;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    digits[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    digits[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  return digits;
}

}  // namespace

std::string connect_header(std::string_view secret, int from) {
  std::array<std::byte, kNonceBytes> nonce{};
  (void)random_bytes(nonce.data(), nonce.size());
  const std::string before = kVersion + std::to_string(from) + " " + hex(nonce.data(), nonce.size()) + " ";
  const std::array<char, 64> digest = digest_of(secret, before);
  return "Dist-Token:" + before + std::string(digest.data(), digest.size());
}

std::string connect_request(std::string_view secret, int from) {
  return "CONNECT libdist HTTP/1.1\r\n" + connect_header(secret, from) + "\r\n\r\n";
}

Request read_request(std::string_view bytes, std::string_view secret, int* from) noexcept {
  constexpr std::string_view kBegin = "CONNECT libdist HTTP/1.";
  constexpr std::string_view kEnd = "\r\n\r\n";
  if (bytes.substr(0, kBegin.size()) != kBegin.substr(0, bytes.size())) return Request::kOther;
  const std::size_t end = bytes.find(kEnd);
  if (end == bytes.npos) return bytes.size() < kMostRequestBytes ? Request::kIncomplete : Request::kOther;
  // A client of libdist sends nothing after the request until it has the response.
  if (end + kEnd.size() != bytes.size()) return Request::kOther;
  const std::string_view head = bytes.substr(0, end);
  const std::size_t at = head.find(kHeader);
  if (at == head.npos) return Request::kOther;
  std::string_view token = head.substr(at + sizeof kHeader - 1);
  token = token.substr(0, token.find("\r\n"));
  // gRPC separates a name from its value with a space.
  if (!token.empty() && token.front() == ' ') token.remove_prefix(1);
  constexpr std::string_view version = kVersion;
  if (token.substr(0, version.size()) != version) return Request::kOther;
  const char* const number = token.data() + version.size();
  const auto [rest, error] = std::from_chars(number, token.data() + token.size(), *from);
  const auto used = static_cast<std::size_t>(rest - token.data());
  if (error != std::errc() || token.size() != used + 1 + kNonceDigits + 1 + 64) return Request::kOther;
  const std::string_view before = token.substr(0, used + 1 + kNonceDigits + 1);
  const std::array<char, 64> wanted = digest_of(secret, before);
  const auto* const given = reinterpret_cast<const std::byte*>(token.data() + before.size());
  return equal(given, reinterpret_cast<const std::byte*>(wanted.data()), wanted.size())
             ? Request::kGood
             : Request::kWrongSecret;
}

std::string why_refused(std::string_view code) {
  if (code == "477") return "its DIST_JOB_SECRET differs. Set the same secret for all processes of the job";
  // libdist answers a token of another version with 400.
  return code.empty() || code == "400"
             ? "the program that answers at that address is not libdist"
             : "the program that answers at that address is an HTTP server, not libdist";
}

std::string explain_response(std::string_view status) {
  constexpr std::string_view kProxy = "HTTP proxy returned response code ";
  const std::size_t at = status.find(kProxy);
  return at == status.npos ? std::string(status) : why_refused(status.substr(at + kProxy.size(), 3));
}

}  // namespace dist::grpc_link
