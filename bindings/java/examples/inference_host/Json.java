// SPDX-License-Identifier: Apache-2.0

package inference_host;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.stream.IntStream;
import org.libdist.DistException;
import org.libdist.Status;

/** Parses the bodies of requests and writes those of answers. */
final class Json {
    private static final JsonFactory FACTORY = new JsonFactory();
    private static final int LONGEST_NAME = 255; // of a file name

    private Json() {}

    // ---- Requests ---------------------------------------------------------------------------------------------

    private interface Reader<T> {
        T read(JsonParser parser) throws IOException;
    }

    private static DistException refused(String message, Throwable cause) {
        return new DistException(Status.INVALID_ARGUMENT, message, cause);
    }

    /** Reads member {@code name} of the body with {@code reader}. The body must be exactly one object. */
    private static <T> T member(byte[] body, String name, String form, Reader<T> reader) {
        T found = null;
        try (JsonParser parser = FACTORY.createParser(body)) {
            if (parser.nextToken() == JsonToken.START_OBJECT) {
                while (parser.nextToken() == JsonToken.FIELD_NAME) {
                    boolean wanted = parser.currentName().equals(name);
                    parser.nextToken();
                    if (wanted) {
                        found = reader.read(parser);
                    } else {
                        parser.skipChildren();
                    }
                }
                if (parser.nextToken() != null) {
                    found = null;
                }
            }
        } catch (IOException e) {
            throw refused("the body is not " + form, e);
        }
        if (found == null) {
            throw refused("the body is not " + form, null);
        }
        return found;
    }

    /** Parses {@code {"ids": [101, 7592, 102]}}: 1 to {@code most} ids. */
    static int[] ids(byte[] body, int most) {
        int[] ids = member(body, "ids", "{\"ids\": [...]}", parser -> {
            if (parser.currentToken() != JsonToken.START_ARRAY) {
                return null;
            }
            IntStream.Builder list = IntStream.builder();
            for (int n = 0; parser.nextToken() != JsonToken.END_ARRAY; n++) {
                if (n == most) {
                    throw refused("there are more ids than a text may have", null);
                }
                if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT || parser.getIntValue() < 0) {
                    throw refused("an id is not a whole number from 0", null);
                }
                list.add(parser.getIntValue());
            }
            return list.build().toArray();
        });
        if (ids.length == 0) {
            throw refused("there are no ids", null);
        }
        return ids;
    }

    /** Parses {@code {"file": "model.onnx"}}. The file must be directly in {@code folder}. */
    static Path file(byte[] body, Path folder) {
        String name = member(body, "file", "{\"file\": \"...\"}",
                parser -> parser.currentToken() == JsonToken.VALUE_STRING ? parser.getText() : null);
        if (!name.isEmpty() && !name.startsWith(".") && name.indexOf('/') < 0 && name.length() <= LONGEST_NAME) {
            try {
                return folder.resolve(name);
            } catch (InvalidPathException e) {
                throw refused("that is no file's name", e);
            }
        }
        throw refused("the file is to be one of the models' folder, by its name alone", null);
    }

    // ---- Answers ----------------------------------------------------------------------------------------------

    private interface Writer {
        void write(JsonGenerator generator) throws IOException;
    }

    private static byte[] object(Writer content) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (JsonGenerator generator = FACTORY.createGenerator(bytes)) {
            generator.writeStartObject();
            content.write(generator);
            generator.writeEndObject();
            generator.writeRaw('\n');
        } catch (IOException e) { // cannot happen in memory
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    static byte[] embedding(long version, float[] vector) {
        return object(generator -> {
            generator.writeNumberField("version", version);
            generator.writeArrayFieldStart("embedding");
            for (float x : vector) {
                generator.writeNumber(x);
            }
            generator.writeEndArray();
        });
    }

    static byte[] version(long version) {
        return object(generator -> generator.writeNumberField("version", version));
    }

    static byte[] error(String message) {
        return object(generator -> generator.writeStringField("error", message));
    }

    static byte[] health(boolean draining, long version, long waiting, long active, long accepted, long answered,
            long gone) {
        return object(generator -> {
            generator.writeBooleanField("draining", draining);
            generator.writeNumberField("version", version);
            generator.writeNumberField("waiting", waiting);
            generator.writeNumberField("active", active);
            generator.writeNumberField("accepted", accepted);
            generator.writeNumberField("answered", answered);
            generator.writeNumberField("gone", gone);
        });
    }
}
