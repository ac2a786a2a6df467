// SPDX-License-Identifier: Apache-2.0
// The token that begins every connection. gRPC has no limit that would stop a stranger from exhausting memory
// with HTTP/2 frames or TLS handshakes. So a listener hands a connection to gRPC only after its peer has
// presented a token, which only a process that knows the job's secret can make:
//
//     client                                            server
//     CONNECT libdist HTTP/1.1
//     Dist-Token: 1 <worker> <nonce> <HMAC-SHA256>
//                                                       HTTP/1.1 200 OK
//     the TLS handshake, if any, and HTTP/2
//
// gRPC's client speaks this protocol with proxies, and sends the request if a channel has the two arguments
// below.
//
// A token is not a proof: it is the same for all attempts of a channel, so a peer that has read one on the
// network can send it again. It keeps strangers away from gRPC. The handshake of hello.hpp decides which
// peers are admitted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dist::grpc_link {

inline constexpr char kConnectServerArgument[] = "grpc.http_connect_server";
inline constexpr char kConnectHeadersArgument[] = "grpc.http_connect_headers";
inline constexpr char kConnectServer[] = "libdist";
// The maximum size of a request.
inline constexpr std::size_t kMostRequestBytes = 1024;

// Returns the header with a new token, "Dist-Token:...". `from`: the number of this worker, or -1.
std::string connect_header(std::string_view secret, int from);
// A whole request with a new token.
std::string connect_request(std::string_view secret, int from);

enum class Request {
  kIncomplete,  // a correct request may follow
  kOther,       // not a request of libdist
  kWrongSecret,
  kGood,
};
// Parses a request; `bytes` is everything that has arrived. `from` receives the worker that the peer claims
// to be, or -1.
Request read_request(std::string_view bytes, std::string_view secret, int* from) noexcept;

inline constexpr char kAcceptedResponse[] = "HTTP/1.1 200 OK\r\n\r\n";
inline constexpr char kOtherResponse[] = "HTTP/1.1 400 only libdist can connect here\r\n\r\n";
// gRPC's client reports only the status of a response, so this is one that no HTTP server sends.
inline constexpr char kWrongSecretResponse[] = "HTTP/1.1 477 another secret\r\n\r\n";

// Explains a response by its status code, for example "477". An empty code stands for a response that is not
// HTTP.
std::string why_refused(std::string_view code);
// Replaces gRPC's text for a response other than 200 by what it means.
std::string explain_response(std::string_view status);

}  // namespace dist::grpc_link
