// SPDX-License-Identifier: Apache-2.0

package inference_host;

import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.TreeMap;
import org.libdist.BatcherOptions;

/** The command line, the same as that of the C host. */
record Options(Path models, String file, int port, int replicas, Duration drain, int maxItems, BatcherOptions batcher) {
    static final long[] BUCKETS = {16, 32, 64, 128, Model.MOST_TOKENS};

    private static final String USAGE = """
            usage: inference_host [OPTIONS] MODELS FILE     Serves MODELS/FILE on 127.0.0.1
              -p PORT          Port; 0 = any free port, which is printed (default 0)
              -r REPLICAS      Number of replicas; 0 = one for each CPU (default 0)
              -q REQUESTS      Maximum number of queued requests (default 256)
              -b TEXTS         Maximum number of texts in a batch, 1 to 64 (default 8)
              -d MICROSECONDS  How long a text waits for others if a replica is idle
                               (default 0)
              -t MILLISECONDS  How long requests may take to complete after SIGTERM
                               (default 10000)
            """;

    /** An option's default and range. */
    private record Range(long usual, long least, long most) {
        long parse(String word) {
            long value = Long.parseLong(word);
            if (value < least || value > most) {
                throw new NumberFormatException(word);
            }
            return value;
        }
    }

    private static final Map<String, Range> RANGES = Map.of(
            "-p", new Range(0, 0, 65535),
            "-r", new Range(0, 0, 1024),
            "-q", new Range(256, 1, 1_000_000),
            "-b", new Range(8, 1, 64),
            "-d", new Range(0, 0, 3_600_000_000L),
            "-t", new Range(10_000, 0, 3_600_000));

    /** Exits if the command line is invalid. */
    static Options parse(String[] args) {
        try {
            return of(args);
        } catch (IllegalArgumentException e) {
            System.err.print(USAGE);
            System.exit(2);
            return null;
        }
    }

    private static Options of(String[] args) {
        Map<String, Long> given = new TreeMap<>();
        RANGES.forEach((name, range) -> given.put(name, range.usual()));
        int at = 0;
        for (; at + 1 < args.length && args[at].startsWith("-"); at += 2) {
            Range range = RANGES.get(args[at]);
            if (range == null) {
                throw new IllegalArgumentException(args[at]);
            }
            given.put(args[at], range.parse(args[at + 1]));
        }
        if (args.length - at != 2) {
            throw new IllegalArgumentException("MODELS FILE");
        }
        int maxItems = given.get("-b").intValue();
        BatcherOptions batcher = BatcherOptions.DEFAULT
                .maxItems(maxItems)
                .maxWaiting(given.get("-q"))
                .maxDelay(Duration.of(given.get("-d"), ChronoUnit.MICROS))
                .buckets(BUCKETS);
        return new Options(Path.of(args[at]), args[at + 1], given.get("-p").intValue(), given.get("-r").intValue(),
                Duration.ofMillis(given.get("-t")), maxItems, batcher);
    }
}
