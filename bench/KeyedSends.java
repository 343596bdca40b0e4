import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client's part in bench/partitions.py: ADDRESS RECORDS SIZE TOPIC... ; prints one line of JSON. */
public class KeyedSends {
    public static void main(String[] given) throws Exception {
        int records = Integer.parseInt(given[1]);
        byte[] value = new byte[Integer.parseInt(given[2])];
        int topics = given.length - 3;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", given[0]);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        Random random = new Random(5);
        byte[][] keys = new byte[200_000][];
        for (int at = 0; at < keys.length; at++) {
            keys[at] = String.format("key-%08d", random.nextInt(100_000_000)).getBytes();
        }
        long[] failed = {0};
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        for (int at = 3; at < given.length; at++) {
            producer.partitionsFor(given[at]);
        }
        long before = system.getProcessCpuTime();
        long begun = System.nanoTime();
        for (int sent = 0; sent < records; sent++) {
            producer.send(new ProducerRecord<>(given[3 + sent % topics], keys[sent % keys.length], value),
                (metadata, error) -> { if (error != null) failed[0]++; });
        }
        producer.flush();
        double seconds = (System.nanoTime() - begun) / 1e9;
        double cpu = (system.getProcessCpuTime() - before) / 1e9;
        double perRequest = 0;
        for (Map.Entry<MetricName, ? extends Metric> entry : producer.metrics().entrySet()) {
            if (entry.getKey().name().equals("records-per-request-avg")
                    && entry.getKey().group().equals("producer-metrics")) {
                perRequest = (Double) entry.getValue().metricValue();
            }
        }
        producer.close();
        if (failed[0] > 0) {
            throw new IllegalStateException(failed[0] + " records failed");
        }
        System.out.printf("{\"seconds\": %f, \"cpu_s\": %f, \"records_a_request\": %f}%n", seconds, cpu, perRequest);
    }
}
