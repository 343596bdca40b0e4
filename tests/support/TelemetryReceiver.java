// A broker's plugin that takes client telemetry (KIP-714): each push becomes a line of the file that the property
// forebay.telemetry.file names: client id, instance id, "last" or "-", content type, and the metrics in base64.  While
// there is a file of the same name with ".refuse" behind it, pushes are refused.
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

public class TelemetryReceiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private static final Path FILE = Path.of(System.getProperty("forebay.telemetry.file"));

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        if (Files.exists(Path.of(FILE + ".refuse"))) {
            throw new IllegalStateException("refused, as the test wants it");
        }
        ByteBuffer data = payload.data();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        String line = String.join("\t", context.clientId(), payload.clientInstanceId().toString(),
            payload.isTerminating() ? "last" : "-", payload.contentType(), Base64.getEncoder().encodeToString(bytes));
        synchronized (TelemetryReceiver.class) {
            try {
                Files.write(FILE, List.of(line), StandardCharsets.UTF_8, StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new IllegalStateException(error.toString());
            }
        }
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
    }

    @Override
    public void metricChange(KafkaMetric metric) {
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
    }

    @Override
    public void close() {
    }
}
