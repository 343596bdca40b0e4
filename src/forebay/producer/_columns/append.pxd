from forebay._accumulator.topic cimport TopicState
from forebay.producer.columns.columns cimport Columns
from forebay.producer.columns.deliveries cimport BatchDelivery
from forebay.producer.columns.row cimport RowAppender
from forebay.producer.columns.shares cimport RowShare
from forebay._delivery.result cimport BatchResult
from forebay._records.rows cimport RowWindow
from forebay.producer.path cimport SendPath
