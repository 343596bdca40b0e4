from forebay._accumulator.topic cimport TopicState
from forebay.producer._columns.columns cimport Columns
from forebay.producer._columns.batch_delivery cimport BatchDelivery
from forebay.producer._columns.row_appender cimport RowAppender
from forebay.producer._columns.row_share cimport RowShare
from forebay._delivery.result cimport BatchResult
from forebay._records.rows cimport RowWindow
from forebay.producer._path cimport SendPath
