from forebay._arrow.columns cimport BytesColumn
from forebay.producer._columns.columns cimport Columns
from forebay._records.rows cimport RowWindow
