// SPDX-License-Identifier: Apache-2.0
//
// Fuzz target: what a stranger sends before gRPC is given its connection. No bytes may be accepted that do
// not contain a token made with the secret, and no prefix of a request may be accepted. The first byte
// chooses the input: arbitrary bytes, or a correct request of which the second byte's position is replaced by
// the rest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

extern "C" {
#include <cmocka.h>
}
#undef fail

#include <cstdint>
#include <string>
#include <string_view>

#include "core/net/grpc/connect_token.hpp"

namespace dist::grpc_link {
namespace {

constexpr std::string_view kSecret = "a secret of this test";

Request read(std::string_view bytes) {
  int from = 0;
  return read_request(bytes, kSecret, &from);
}

// Returns the value without the field's name and the space that may follow it.
std::string_view token_of(std::string_view request) {
  constexpr std::string_view kName = "Dist-Token:";
  const std::size_t at = request.find(kName) + kName.size();
  return request.substr(at, request.find("\r\n", at) - at);
}

void take(std::string_view input) {
  if (input.empty()) return;
  const bool arbitrary = (input.front() & 1) == 0;
  input.remove_prefix(1);
  if (arbitrary) {
    assert_int_not_equal(static_cast<int>(read(input)), static_cast<int>(Request::kGood));
    (void)explain_response(std::string(input));
    return;
  }
  if (input.empty()) return;
  const std::string good = connect_request(kSecret, 3);
  assert_int_equal(static_cast<int>(read(good)), static_cast<int>(Request::kGood));
  const std::size_t at = static_cast<uint8_t>(input.front()) % good.size();
  assert_int_equal(static_cast<int>(read(std::string_view(good).substr(0, at))),
                   static_cast<int>(Request::kIncomplete));
  std::string changed = good;
  changed.replace(at, input.size() - 1, input.substr(1));
  if (changed.find(token_of(good)) == std::string::npos)
    assert_int_not_equal(static_cast<int>(read(changed)), static_cast<int>(Request::kGood));
}

}  // namespace
}  // namespace dist::grpc_link

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dist::grpc_link::take({reinterpret_cast<const char*>(data), size});
  return 0;
}
