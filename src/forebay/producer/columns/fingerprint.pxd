from forebay._arrow.columns cimport BytesColumn
from forebay._columnar.columns cimport Columns
from forebay._records.rows cimport RowWindow
