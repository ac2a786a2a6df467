/* SPDX-License-Identifier: Apache-2.0
 *
 * dist_go.i: what is Go's own. A method that returns a status returns an `error`, made in the same native
 * call; memory comes as a []byte, without a copy and for the time of the call.
 */
%insert(cgo_comment) %{
#cgo pkg-config: dist
%}

%insert(go_wrapper) %{
// StatusError is a status that is not OK: the record of dist_swig_error() in dist.i.
type StatusError struct{ Record string }

func (e *StatusError) Error() string { return e.Record }
%}
%typemap(gotype) dist_status "error"
%typemap(imtype) dist_status "string"
%typemap(out) dist_status %{
  if ($1 == DIST_OK) {
    $result.p = 0;
    $result.n = 0;
  } else {
    const std::string record = dist_swig_error($1);
    $result = Swig_AllocateString(record.data(), record.size());
  }
%}
%typemap(goout) dist_status %{
	if $1 != "" {
		$result = &StatusError{swigCopyString($1)}
	}
%}

%typemap(gotype) void *data "[]byte"
%typemap(in) void *data %{ $1 = $input.array; %}

/* Text in: short ones without malloc. */
%typemap(in) const char *UTF8 (std::string text) %{
  text.assign($input.p, (size_t)$input.n);
  $1 = &text[0];
%}
%typemap(freearg) const char *UTF8 ""
%apply const char *UTF8 { const char *tag, const char *text };
