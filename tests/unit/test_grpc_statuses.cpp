// SPDX-License-Identifier: Apache-2.0
// Tests explain_status(), which translates what gRPC reports about failed connections.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/net/grpc/connect_token.hpp"
#include "core/net/grpc/reasons.hpp"
#include "core/net/grpc/statuses.hpp"

extern "C" {
#include <cmocka.h>
}

namespace dist::grpc_link {
namespace {

// Fails if the text still contains gRPC's wording, which users do not understand.
void assert_translated(const std::string& text) {
  for (const char* const part : {"FD Shutdown",
                                 "FD shutdown",
                                 "ipv4:",
                                 "ipv6:",
                                 "%5B",
                                 "%5D",
                                 "%25",
                                 "HTTP proxy",
                                 "Socket closed",
                                 "Stream removed",
                                 "Endpoint",
                                 "Handshaker",
                                 "GOAWAY",
                                 "SSL_ERROR",
                                 "SSL routines",
                                 "remote host",
                                 "Expected ",
                                 "Failed parsing",
                                 "UNKNOWN",
                                 "UNAVAILABLE",
                                 "INTERNAL:",
                                 "last error",
                                 "failed to connect to all addresses",
                                 "Timeout occurred"}) {
    if (text.find(part) != std::string::npos) fail_msg("'%s' is in: %s", part, text.c_str());
  }
}

void phrases_of_grpc_are_translated(void**) {
  // "@" stands for the address.
  const struct {
    const char* phrase;
    const char* text;
  } table[] = {
      {"Failed to connect to remote host: Connection refused", "connection refused at @"},
      {"connect: Connection refused (111)", "connection refused at @"},
      {"Failed to connect to remote host: FD Shutdown", "@ did not accept the connection in time"},
      {"Failed to connect to remote host: Timeout occurred", "@ did not accept the connection in time"},
      {"Failed to connect to remote host: Connection timed out", "@ did not accept the connection in time"},
      {"Failed to connect to remote host: No route to host", "the connection to @ failed: No route to host"},
      {"FD Shutdown", "@ did not complete the handshake in time"},
      {"Handshake timed out", "@ did not complete the handshake in time"},
      {"Handshaker shutdown", "@ did not complete the handshake in time"},
      {"Deadline Exceeded", "@ did not complete the handshake in time"},
      {"Socket closed", "@ closed the connection during the handshake"},
      {"Stream removed", "@ closed the connection during the handshake"},
      {"Handshake read failed", "@ closed the connection during the handshake"},
      {"Handshake write failed", "@ closed the connection during the handshake"},
      {"Endpoint read failed", "@ closed the connection during the handshake"},
      {"Endpoint closing", "@ closed the connection during the handshake"},
      {"recvmsg:Connection reset by peer", "@ closed the connection during the handshake"},
      {"sendmsg: Broken pipe (32)", "@ closed the connection during the handshake"},
      {"GOAWAY received", "@ closed the connection during the handshake"},
      {"Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number",
       "the TLS handshake with @ failed: it did not answer with TLS"},
      {"Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed",
       "the TLS handshake with @ failed: its certificate is not valid here"},
      {"Ssl handshake failed: SSL_ERROR_SSL: error:0A000410:SSL routines::sslv3 alert handshake failure",
       "the TLS handshake with @ failed: sslv3 alert handshake failure"},
      {"Ssl handshake failed: SSL_ERROR_SYSCALL", "the TLS handshake with @ failed: unknown reason"},
      {"Peer name a.example is not in peer certificate",
       "the TLS handshake with @ failed: its certificate is for other names"},
      {"Expected 'H'", "the program that answers at that address is not libdist"},
      {"Expected one of HTTP/1.0, HTTP/1.1, or HTTP/2.0",
       "the program that answers at that address is not libdist"},
      {"Failed parsing HTTP/2: Expected SETTINGS frame as the first frame, got frame type 80",
       "the program that answers at that address is not libdist"},
      {"Cannot check peer: missing selected ALPN property.",
       "the program that answers at that address is not libdist"},
      {"HTTP proxy returned response code 477",
       "its DIST_JOB_SECRET differs. Set the same secret for all processes of the job"},
      {"HTTP proxy returned response code 400", "the program that answers at that address is not libdist"},
      {"HTTP proxy returned response code 403",
       "the program that answers at that address is an HTTP server, not libdist"},
  };
  constexpr const char* kAddresses[][2] = {{"ipv4:10.0.0.7:2222", "10.0.0.7:2222"},
                                           {"ipv6:%5B::1%5D:2222", "[::1]:2222"},
                                           {"ipv6:%5bfe80::1%25eth0%5d:2222", "[fe80::1%eth0]:2222"}};
  for (const auto& each : table) {
    for (const auto& [shown, address] : kAddresses) {
      std::string text = each.text;
      if (const std::size_t at = text.find('@'); at != text.npos) text.replace(at, 1, address);
      const std::string phrase = std::string(shown) + ": " + each.phrase;
      for (const char* const before : {"", "UNKNOWN: ", "UNAVAILABLE: ", "INTERNAL: ",
                                       "failed to connect to all addresses; last error: ",
                                       "failed to connect to all addresses; last error: UNKNOWN: ",
                                       "connections to all backends failing; last error: UNAVAILABLE: "}) {
        const std::string explained = explain_status(before + phrase);
        assert_string_equal(explained.c_str(), text.c_str());
        assert_translated(explained);
        assert_true(nobody_listens(explained) == text.starts_with("connection refused"));
        // Reports are lists of such texts.
        Reasons reasons;
        reasons.add(explained);
        assert_string_equal(reasons.text().c_str(), text.c_str());
      }
    }
  }
}

void phrases_without_an_address_are_translated(void**) {
  const struct {
    const char* phrase;
    const char* text;
  } table[] = {
      {"failed to connect to all addresses", "no connection could be made"},
      {"Socket closed", "the peer closed the connection during the handshake"},
      {"Stream removed", "the peer closed the connection during the handshake"},
      {"UNAVAILABLE: Socket closed", "the peer closed the connection during the handshake"},
      {"Connection reset by peer", "the peer closed the connection during the handshake"},
      {"FD Shutdown", "the peer did not complete the handshake in time"},
      {"Deadline Exceeded", "the peer did not complete the handshake in time"},
      {"HTTP proxy returned response code 477",
       "its DIST_JOB_SECRET differs. Set the same secret for all processes of the job"},
      {"last error: UNKNOWN: HTTP proxy returned response code 502",
       "the program that answers at that address is an HTTP server, not libdist"},
  };
  for (const auto& each : table) {
    const std::string explained = explain_status(each.phrase);
    assert_string_equal(explained.c_str(), each.text);
    assert_translated(explained);
    assert_false(nobody_listens(explained));
  }
}

// Texts by libdist, and gRPC texts that only other versions have, stay unchanged.
void other_texts_stay_as_they_are(void**) {
  for (const char* const text :
       {"", "worker 1 has already joined and is running",
        "worker 1 uses libdist 9.9.9, but worker 0 uses libdist 0.2.0",
        "its host name does not resolve: Name or service not known", "it did not authenticate in time",
        "it expects worker 1, but this is worker 0", "the cluster differs from the one at worker 0",
        "a text of another version", "UNIMPLEMENTED: a method: unknown", "ipv4:", "ipv6:[::1]:1",
        "10.0.0.7:2222: Socket closed at once"}) {
    assert_string_equal(explain_status(text).c_str(), text);
    assert_false(nobody_listens(explain_status(text)));
  }
  // With an address, the text continues a sentence that contains it.
  assert_string_equal(explain_status("UNKNOWN: ipv4:10.0.0.7:1: a new phrase").c_str(),
                      "the connection to 10.0.0.7:1 failed: a new phrase");
  assert_string_equal(explain_response("a text about another thing").c_str(), "a text about another thing");
}

}  // namespace
}  // namespace dist::grpc_link

int main() {
  using namespace dist::grpc_link;
  const CMUnitTest tests[] = {
      cmocka_unit_test(phrases_of_grpc_are_translated),
      cmocka_unit_test(phrases_without_an_address_are_translated),
      cmocka_unit_test(other_texts_stay_as_they_are),
  };
  return cmocka_run_group_tests_name("grpc_statuses", tests, nullptr, nullptr);
}
