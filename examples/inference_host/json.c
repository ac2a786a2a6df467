// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OF_A_NUMBER = 20 };  // room for "-1.17549435e-38, " and a NUL

// cJSON's strings end at a NUL, also at one that the body has as "\\u0000".
static int has_nul(const char *body, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (body[i] == '\0') return 1;
    if (body[i] == '\\' && size - i >= 6 && memcmp(body + i + 1, "u0000", 5) == 0) return 1;
    if (body[i] == '\\') i++;  // an escaped backslash begins no other escape
  }
  return 0;
}

// The whole body must be one JSON value; only white space may follow.
static cJSON *parse(const char *body, size_t size) {
  if (has_nul(body, size)) return NULL;
  const char *end = body;
  cJSON *whole = cJSON_ParseWithLengthOpts(body, size, &end, 0);
  while (whole != NULL && end < body + size && strchr(" \t\r\n", *end) != NULL && *end != '\0') end++;
  if (whole != NULL && end == body + size) return whole;
  cJSON_Delete(whole);
  return NULL;
}

dist_status json_ids(const char *body, size_t size, int32_t *ids, int64_t most, int64_t *out_n) {
  cJSON *whole = parse(body, size);
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(whole, "ids"), *id = NULL;
  dist_status status = DIST_OK;
  int64_t n = 0;
  if (!cJSON_IsArray(list)) status = dist_fail(DIST_INVALID_ARGUMENT, "the body is not {\"ids\": [...]}");
  for (id = status ? NULL : list->child; id != NULL && !status; id = id->next) {
    if (n == most)
      status = dist_fail(DIST_INVALID_ARGUMENT, "there are more ids than a text may have");
    else if (!cJSON_IsNumber(id) || id->valuedouble != floor(id->valuedouble) || id->valuedouble < 0.0 ||
             id->valuedouble > (double)INT32_MAX)
      status = dist_fail(DIST_INVALID_ARGUMENT, "an id is not a whole number from 0");
    else
      ids[n++] = (int32_t)id->valuedouble;
  }
  if (!status && n == 0) status = dist_fail(DIST_INVALID_ARGUMENT, "there are no ids");
  cJSON_Delete(whole);
  *out_n = n;
  return status;
}

dist_status json_path(const char *body, size_t size, const char *folder, char *path, size_t most) {
  cJSON *whole = parse(body, size);
  const char *file = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(whole, "file"));
  dist_status status = DIST_OK;
  if (file == NULL)
    status = dist_fail(DIST_INVALID_ARGUMENT, "the body is not {\"file\": \"...\"}");
  else if (file[0] == '\0' || file[0] == '.' || strchr(file, '/') != NULL ||
           snprintf(path, most, "%s/%s", folder, file) >= (int)most)
    status =
        dist_fail(DIST_INVALID_ARGUMENT, "the file is to be one of the models' folder, by its name alone");
  cJSON_Delete(whole);
  return status;
}

char *json_embedding(int64_t version, const float *vector, int64_t n, size_t *out_size) {
  const size_t room = 64 + (size_t)n * MOST_OF_A_NUMBER;
  char *text = malloc(room);
  if (text == NULL) return NULL;
  size_t at = (size_t)snprintf(text, room, "{\"version\": %" PRId64 ", \"embedding\": [", version);
  for (int64_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, room - at, "%s%.9g", i == 0 ? "" : ", ", (double)vector[i]);
  at += (size_t)snprintf(text + at, room - at, "]}\n");
  *out_size = at;
  return text;
}

char *json_version(int64_t version, size_t *out_size) {
  char *text = malloc(64);
  if (text != NULL) *out_size = (size_t)snprintf(text, 64, "{\"version\": %" PRId64 "}\n", version);
  return text;
}

char *json_health(const json_health_of *now, size_t *out_size) {
  enum { ROOM = 320 };
  char *text = malloc(ROOM);
  if (text == NULL) return NULL;
  *out_size = (size_t)snprintf(text, ROOM,
                               "{\"draining\": %s, \"version\": %" PRId64 ", \"waiting\": %" PRId64
                               ", \"active\": %" PRId64 ", \"accepted\": %" PRId64 ", \"answered\": %" PRId64
                               ", \"gone\": %" PRId64 "}\n",
                               now->draining ? "true" : "false", now->version, now->waiting, now->active,
                               now->accepted, now->answered, now->gone);
  return text;
}

char *json_error(const char *text, size_t *out_size) {
  cJSON *whole = cJSON_CreateObject();
  char *made = cJSON_AddStringToObject(whole, "error", text) != NULL ? cJSON_PrintUnformatted(whole) : NULL;
  cJSON_Delete(whole);
  *out_size = made != NULL ? strlen(made) : 0;
  return made;
}
