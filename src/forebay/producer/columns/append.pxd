from forebay._accumulator.topic cimport TopicState
from forebay._columnar.columns cimport Columns
from forebay._columnar.deliveries cimport BatchDelivery
from forebay._columnar.row cimport RowAppender
from forebay._columnar.shares cimport Share
from forebay._delivery.result cimport BatchResult
from forebay._records.rows cimport RowWindow
from forebay._send.path cimport SendPath
