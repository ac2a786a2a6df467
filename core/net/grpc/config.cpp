// SPDX-License-Identifier: Apache-2.0
#include "core/net/grpc/config.hpp"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <algorithm>

#include "core/net/grpc/connect_token.hpp"
#include "core/net/grpc/queue.hpp"

namespace dist::grpc_link {
namespace {

constexpr int64_t kHandshakeNs = 5'000'000'000;
constexpr int kIdleMs = 10000;

int to_ms(int64_t ns) noexcept { return static_cast<int>(std::max<int64_t>(ns / 1'000'000, 1)); }

}  // namespace

// A write can contain a large message that is sent ahead, besides other frames.
std::size_t Config::most_message_bytes() const noexcept {
  return std::max(credit, FrameQueue::kWriteBytes) + FrameQueue::kWriteBytes;
}

std::string host_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

std::string port_of(const std::string& address) { return address.substr(address.rfind(':') + 1); }

std::string target_of(const std::vector<std::string>& hosts, const std::string& port) {
  const auto is_v6 = [](const std::string& host) { return host.find(':') != std::string::npos; };
  const bool any_v6 = std::any_of(hosts.begin(), hosts.end(), is_v6);
  std::string target = any_v6 ? "ipv6:" : "ipv4:";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i != 0) target += ',';
    if (!any_v6) {
      target += hosts[i];
    } else {
      // A target has addresses of one family, so IPv4 addresses are written as IPv6 ones. gRPC maps them
      // back.
      target += is_v6(hosts[i]) ? "%5B" : "%5B::ffff:";
      for (const char each : hosts[i]) each == '%' ? target += "%25" : target += each;
      target += "%5D";
    }
    target += ':' + port;
  }
  return target;
}

std::string host_of_peer(const std::string& peer) {
  const std::size_t scheme = peer.find(':');
  if (scheme == std::string::npos ||
      (peer.compare(0, scheme, "ipv4") != 0 && peer.compare(0, scheme, "ipv6") != 0))
    return "";
  std::string text;
  for (std::size_t at = scheme + 1; at < peer.size(); ++at) {
    const std::string code = peer.substr(at, 3);
    const char plain = code == "%5B" || code == "%5b"   ? '['
                       : code == "%5D" || code == "%5d" ? ']'
                       : code == "%25"                  ? '%'
                                                        : '\0';
    text += plain != '\0' ? plain : peer[at];
    if (plain != '\0') at += 2;
  }
  return host_of(text);
}

std::shared_ptr<grpc::Channel> make_channel(const Config& config, const std::string& address,
                                            const std::vector<std::string>& hosts) {
  grpc::ChannelArguments with;
  // The server's certificate must name this host.
  with.SetString(GRPC_ARG_DEFAULT_AUTHORITY, address);
  // Proxy settings in the environment are for the host's own traffic.
  with.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each link has its own connection, so that large messages delay neither heartbeats nor other workers.
  with.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  with.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  with.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  with.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, to_ms(config.scaled_ns(kHandshakeNs)));
  with.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  with.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Detects a connection that breaks silently.
  with.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, to_ms(config.lease_ns));
  with.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, to_ms(config.lease_ns));
  with.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  with.SetMaxReceiveMessageSize(static_cast<int>(config.most_message_bytes()));
  with.SetMaxSendMessageSize(-1);
  with.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  with.SetString(kConnectServerArgument, kConnectServer);
  with.SetString(kConnectHeadersArgument, connect_header(config.secret, config.me));
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (config.tls()) {
    credentials = grpc::SslCredentials({config.ca, config.key, config.certificate});
  } else {
    credentials = grpc::InsecureChannelCredentials();
  }
  return grpc::CreateCustomChannel(target_of(hosts, port_of(address)), credentials, with);
}

std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> configure(const Config& config,
                                                                          grpc::ServerBuilder& builder) {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (config.tls()) {
    grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = config.ca;
    options.pem_key_cert_pairs.push_back({config.key, config.certificate});
    credentials = grpc::SslServerCredentials(options);
  } else {
    credentials = grpc::InsecureServerCredentials();
  }
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, to_ms(config.scaled_ns(kHandshakeNs)));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 2);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8192);
  // Links may be idle, and their clients then send pings.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, to_ms(config.lease_ns));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, to_ms(config.lease_ns));
  builder.SetMaxReceiveMessageSize(static_cast<int>(config.most_message_bytes()));
  builder.SetMaxSendMessageSize(-1);
  using Experimental = grpc::ServerBuilder::experimental_type;
  return builder.experimental().AddExternalConnectionAcceptor(Experimental::ExternalConnectionType::FROM_FD,
                                                              credentials);
}

std::string certificate_of(const grpc::AuthContext& context) {
  if (!context.IsPeerAuthenticated()) return "";
  const std::vector<grpc::string_ref> found = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (found.size() != 1) return "";
  std::string text(found.front().data(), found.front().size());
  for (const grpc::string_ref& each : context.FindPropertyValues(GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME))
    text.append(each.data(), each.size());
  return text;
}

}  // namespace dist::grpc_link
