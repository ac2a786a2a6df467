// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_certificates.hpp"

#include "core/cluster/link_security.hpp"

#ifdef DIST_INFO_HAS_OPENSSL
#include "core/net/grpc/certificates.hpp"
#endif

namespace dist::info {

#ifdef DIST_INFO_HAS_OPENSSL

Certificates check_certificates(const KeptSecurity& security, const std::string& host) {
  const auto text = [](const std::pmr::string& from) { return std::string(from); };
  const grpc_link::Credentials own{
      text(security.ca),      text(security.certificate),      text(security.key),
      text(security.ca_file), text(security.certificate_file), text(security.key_file)};
  const grpc_link::Places here{"here", "here"};
  Certificates found;
  found.is_checked = true;
  found.why = grpc_link::why_unusable(own);
  if (!found.why.empty()) return found;
  if (const grpc_link::Fault fault = grpc_link::why_own_rejected(own, host, here))
    found.why = "the certificate DIST_TLS_CERTIFICATE (" + own.certificate_file + ") " + fault.text() + ".";
  found.fit_loopback = !grpc_link::why_own_rejected(own, "127.0.0.1", here);
  return found;
}

#else

Certificates check_certificates(const KeptSecurity&, const std::string&) { return {}; }

#endif

}  // namespace dist::info
